"""Users learn of ends of their tasks: by commands that run as they do, and by webhooks to hosts that are allowed."""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from messiahs.daemon.notifications.giving import OF_ONE_USER
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.live.shared_host import Host, shared_installation
from tests.ports import free_port
from tests.waiting import eventually

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
SHARED = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: process, slots: 8}}
"""
TOLD = {"id", "name", "state", "exit_code", "submitted_at", "ended_at"}


@dataclass
class Hook:
    """A server that answers with the next of its statuses, the last one again and again, and keeps what is posted."""

    statuses: list[int]
    posted: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    @property
    def host(self) -> str:
        """Return HOST:PORT."""
        return self.url.removeprefix("http://")


@contextmanager
def listening(*statuses: int, to: str = "") -> Iterator[Hook]:
    hook = Hook(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(hook.statuses.pop(0) if hook.statuses[1:] else hook.statuses[0])
            if to:
                self.send_header("Location", to)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hook
        finally:
            server.shutdown()
            thread.join()


def solo_at(folder: Path, *, hosts: str = "") -> Federation:
    topology = folder / "solo.yaml"
    defaults = f"defaults: {{update_period: 200ms, webhook_hosts: [{hosts}]}}"
    machine = fixed_machine(slots=4)
    topology.write_text(f"version: 1\nfederation: solo\n{defaults}\nsystems:\n  solo: {{machine: {machine}}}\n")
    return Federation(topology=topology, name="solo", state=folder / "state", module="solo")


def notified(solo: Federation, task: str) -> dict[str, Any]:
    eventually(lambda: (solo.status(task)["notified"] or {}).get("at"))
    return dict(solo.status(task)["notified"])


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with shared_installation(tmp_path_factory.mktemp("host"), SHARED) as made:
        yield made


def submitted(host: Host, person: str, *command: str, notify: str) -> str:
    done = host.run(person, "submit", "--module", "site", "--quiet", "--notify", notify, "--", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def told(host: Host, task: str, *, by: str) -> dict[str, Any]:
    (found,) = json.loads(host.run(by, "status", task, "--json").stdout)["tasks"]
    return dict(found["notified"] or {"at": None})


@as_root
def test_a_command_runs_as_the_user_and_has_nothing_of_the_daemon(host: Host) -> None:
    script = "id -un; id -Gn; pwd; env | sort; ls /proc/self/fd; grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status"
    task = submitted(host, "ann", "sh", "-c", "exit 3", notify=f"({script}) > note.part; mv note.part note")
    note = host.path("/home/ann/note")
    eventually(note.exists)
    user, groups, folder, *rest = note.read_text().splitlines()
    assert (user, groups.split(), folder) == ("ann", ["ann", "hpc"], "/home/ann")
    variables = dict(line.split("=", 1) for line in rest if "=" in line)
    assert variables.pop("MESSIAHS_SUBMITTED_AT") < variables.pop("MESSIAHS_ENDED_AT")
    assert {name: value for name, value in variables.items() if name.startswith("MESSIAHS_")} == {
        "MESSIAHS_TASK_ID": task,
        "MESSIAHS_TASK_NAME": "",
        "MESSIAHS_STATE": "finished",
        "MESSIAHS_EXIT_CODE": "3",
    }
    others = {"HOME", "LANG", "LOGNAME", "PATH", "PWD", "USER"}
    assert {name for name in variables if not name.startswith("MESSIAHS_")} <= {*others, "SHLVL", "OLDPWD", "_"}
    # Those of `ls`: its standard streams, and the folder that it reads.
    assert [line for line in rest if line.isdecimal()] == ["0", "1", "2", "3"]
    capabilities = [line.split()[1] for line in rest if line.startswith("Cap")]
    assert capabilities == ["0" * 16] * 3


@as_root
def test_what_a_command_has_printed_is_for_its_user_and_a_failure_is_for_all(host: Host) -> None:
    task = submitted(host, "ann", "true", notify="echo the key is 1234; exit 5")
    eventually(lambda: told(host, task, by="ann")["at"])
    failed = "the command ended with exit code 5"
    for person, output in (("ann", "the key is 1234"), ("eve", "")):
        seen = told(host, task, by=person)
        assert (seen["problem"], seen["output"]) == (failed, output)
    assert f"{failed}; it printed: the key is 1234" in host.run("ann", "explain", task).stdout
    decided = host.run("ann", "audit", "decisions", "--module", "site", "--task", task, "--json").stdout
    assert [
        (line["what"], line["why"]) for line in map(json.loads, decided.splitlines()) if "notif" in line["what"]
    ] == [("notified", failed)]


@as_root
def test_slow_commands_of_one_user_hold_up_neither_others_nor_the_module(host: Host) -> None:
    command = "echo $$ >> slow; exec sleep 1000"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: submitted(host, "bob", "true", notify=command), range(OF_ONE_USER + 2)))
    slow = host.path("/home/bob/slow")
    eventually(lambda: slow.exists() and len(slow.read_text().splitlines()) == OF_ONE_USER)
    task = submitted(host, "eve", "true", notify="touch done")
    eventually(lambda: told(host, task, by="eve")["at"])
    assert host.path("/home/eve/done").exists()
    assert len(slow.read_text().splitlines()) == OF_ONE_USER
    assert host.shell("bob", "pkill -u bob sleep; true").returncode == 0
    eventually(lambda: len(slow.read_text().splitlines()) == OF_ONE_USER + 2)
    assert host.shell("bob", "pkill -u bob sleep").returncode == 0


@as_root
def test_a_module_of_an_account_runs_commands_of_no_other_one(host: Host) -> None:
    topology = host.path("/home/ann/own.yaml")
    machine = "{machine: {isolation: bubblewrap, slots: 2}, users: everyone}"
    topology.write_text(f"version: 1\nfederation: own\nsystems:\n  own: {machine}\n")
    places = ("--state", "/home/ann/state", "--sockets", "/home/ann/sockets")
    assert host.shell("ann", "chmod o+x ~; mkdir -m 755 ~/sockets").returncode == 0
    began = host.run("ann", "up", "/home/ann/own.yaml", "--detach", *places)
    try:
        assert began.returncode == 0, began.stderr
        at = ("--module", "own", "--state", "/home/ann/sockets")
        refused = host.run("eve", "submit", *at, "--notify", "true", "--", "true")
        assert refused.returncode != 0
        assert "it can run no command as another account than its own" in refused.stderr
        assert host.run("ann", "submit", *at, "--notify", "true", "--", "true").returncode == 0
    finally:
        host.run("ann", "down", "/home/ann/own.yaml", "--state", "/home/ann/state")


def test_an_array_posts_its_end_once_with_nothing_but_what_is_promised(tmp_path: Path) -> None:
    with listening(200) as hook:
        solo = solo_at(tmp_path, hosts=hook.host)
        with brought_up(solo):
            words = ("--array", "0-19", "--name", "sweep", "--notify", f"{hook.url}/a?token=1")
            array = solo.submit(*words, "--", "sh", "-c", "test {} != 7")
            assert notified(solo, array)["problem"] == ""
        (posted,) = hook.posted
    assert posted.keys() == TOLD
    assert (posted["id"], posted["name"], posted["state"], posted["exit_code"]) == (array, "sweep", "finished", 1)


def test_a_webhook_that_is_away_is_tried_again_and_a_redirection_is_not_followed(tmp_path: Path) -> None:
    with listening(200) as elsewhere, listening(503, 200) as first, listening(302, to=elsewhere.url) as second:
        solo = solo_at(tmp_path, hosts=f'"{first.host}", "{second.host}", "{elsewhere.host}"')
        with brought_up(solo):
            again, led = (solo.submit("--notify", hook.url, "--", "true") for hook in (first, second))
            assert notified(solo, led)["problem"] == "the webhook answered 302, and redirections are not followed"
            assert notified(solo, again)["problem"] == ""
        assert (len(first.posted), len(second.posted), elsewhere.posted) == (2, 1, [])


def test_a_host_that_is_not_allowed_is_refused_at_the_submit_also_in_a_file(tmp_path: Path) -> None:
    solo, file = solo_at(tmp_path, hosts="hooks.example.org"), tmp_path / "tasks.yaml"
    with brought_up(solo):
        refused = solo.run("submit", "--notify", "https://hooks.example.org:8443/x", "--", "true")
        assert refused.returncode != 0
        text = "this module does not post to hooks.example.org:8443: `webhook_hosts` in its topology file names only"
        assert text in refused.stderr
        file.write_text("tasks:\n  one: {command: 'true'}\n  two: {command: 'true', notify: 'http://localhost/x'}\n")
        refused = solo.run("submit", "--file", str(file))
        assert refused.returncode != 0
        assert "tasks.yaml:3" in refused.stderr
        assert "this module does not post to localhost" in refused.stderr
        assert solo.document("status")["tasks"] == []


def test_a_webhook_that_is_away_shows_why_and_when_it_is_tried_again(tmp_path: Path) -> None:
    away = f"127.0.0.1:{free_port()}"
    solo = solo_at(tmp_path, hosts=away)
    with brought_up(solo):
        task = solo.submit("--notify", f"HTTP://{away}/x", "--", "true")
        eventually(lambda: (solo.status(task)["notified"] or {}).get("retry"))
        seen = dict(solo.status(task)["notified"])
        assert (seen["at"], seen["problem"]) == (None, "the webhook cannot be reached: connection refused")
        assert seen["retry"].keys() == {"tries", "next_at"}
        for command in ("explain", "status"):
            text = f"{command}: {solo.run(command, task).stdout}"
            assert re.search(r"--notify: try \d+ failed: the webhook cannot be reached: connection refused; ", text)


def test_a_scheme_that_is_no_webhook_and_an_empty_notification_are_refused(tmp_path: Path) -> None:
    solo, file = solo_at(tmp_path), tmp_path / "tasks.yaml"
    file.write_text("tasks:\n  one: {command: 'true', notify: ''}\n")
    with brought_up(solo):
        for words, problem in (
            (("--notify", "ftp://x/y", "--", "true"), "ftp:// is no webhook"),
            (("--notify", "", "--", "true"), "`notify` is empty"),
            (("--file", str(file)), "`notify` is empty"),
        ):
            refused = solo.run("submit", *words)
            assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
        assert solo.document("status")["tasks"] == []


def test_a_kill_of_the_daemon_repeats_a_notification_and_loses_none(tmp_path: Path) -> None:
    solo, began, may_end = solo_at(tmp_path), tmp_path / "began", tmp_path / "may-end"
    with brought_up(solo):
        command = f"echo >> {began}; while ! test -e {may_end}; do sleep 0.1; done"
        task = solo.submit("--notify", command, "--", "true")
        eventually(began.exists)
        solo.kill("solo", "daemon")
        eventually(lambda: len(began.read_text().splitlines()) == 2)
        may_end.touch()
        assert notified(solo, task)["problem"] == ""
        solo.kill("solo", "daemon")
        # One that was given is not repeated.
        assert solo.status(task)["notified"]["at"]
        another = solo.submit("--notify", f"echo >> {began}", "--", "true")
        assert notified(solo, another)["problem"] == ""
        assert len(began.read_text().splitlines()) == 3
