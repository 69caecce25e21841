"""A module that root runs for everybody on its host, for a group, or that a person runs for themselves."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.settings import DEFAULT_TASK_UIDS
from tests.live.shared_host import ROOT, Host, shared_host, shared_installation

_BLOCK = re.compile(r"^<!-- as (\w+) -->\n```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
SHARED = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: process, slots: 2}}
  lab:  {parent: site, users: "group:hpc"}
  gate: {parent: site}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with shared_installation(tmp_path_factory.mktemp("host"), SHARED) as made:
        yield made


@pytest.mark.parametrize("person", ["ann", "eve"])
def test_everybody_finds_and_uses_a_module_of_root_without_any_setting(host: Host, person: str) -> None:
    done = host.run(person, "run", "--module", "site", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    task = json.loads(host.run(person, "status", "--module", "site", "--json").stdout)["tasks"][-1]
    assert task["user"] == person


def test_a_module_for_a_group_serves_its_members_and_tells_others(host: Host) -> None:
    done = host.run("bob", "run", "--module", "lab", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    refused = host.run("eve", "run", "--module", "lab", "--", "echo", "hello")
    text = "you have no permission to use the module `lab`: it serves the group hpc; ask an administrator to add"
    assert refused.returncode == 125
    assert text in refused.stderr


def test_each_user_sees_only_what_they_may(host: Host) -> None:
    task = host.run("ann", "submit", "--module", "site", "--quiet", "--", "echo", "secret").stdout.strip()
    assert host.run("ann", "wait", task).returncode == 0
    assert host.run("ann", "logs", task).stdout == "secret\n"
    assert f"{task} belongs to another user" in host.run("eve", "logs", task).stderr
    assert f"{task} belongs to another user" in host.run("eve", "clean", task).stderr
    submit = ("submit", "--module", "site")
    for words in (("fetch", task), (*submit, "--after", task, "true"), (*submit, "--input", f"@{task}/secret", "true")):
        refused = host.run("eve", *words)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"{task} belongs to another user" in refused.stderr
    for words in (("fetch", "site.999"), (*submit, "--after", "site.999", "true")):
        assert host.run("eve", *words).returncode == 1
    assert host.run("eve", "clean", "--module", "site", "--older-than", "0s").returncode == 0
    assert host.run("ann", "logs", task).stdout == "secret\n"
    ledgers = {name: host.run(name, "accounting", "--module", "site") for name in ("ann", "root")}
    assert ledgers["ann"].stderr == "only what ann used: root and the user of site see all\n"
    assert ledgers["ann"].stdout.startswith("USER ")
    assert ledgers["root"].stderr == ""
    assert host.run("root", "clean", task).stdout == "1 task forgotten, 7 B of disk and 1.0 KiB of memory freed\n"
    assert host.run("ann", "status", task).returncode == 1


def test_users_list_and_cancel_their_own_tasks_alone(host: Host) -> None:
    place = ("--module", "site")
    ids = {}
    for person in ("ann", "eve", "root"):
        words = ("submit", *place, "--quiet", "--array", "1-2", "--", "sleep", "600")
        ids[person] = host.run(person, *words).stdout.strip()
    for person, task in ids.items():
        assert host.run(person, "status", *place, "--mine", "--active", "-q").stdout.split() == [task]
        assert host.run("bob", "status", *place, "--user", person, "--active", "-q").stdout.split() == [task]
    assert host.run("bob", "cancel", *place, "--mine").stdout == "none of your tasks is left to cancel\n"
    for person, task in ids.items():
        assert host.run(person, "cancel", *place, "--mine").stdout == "2 of 2 cancelled\n"
        left = host.run(person, "status", *place, "--active", "-q").stdout.split()
        assert task not in left
        assert len(left) == len(ids) - 1 - list(ids).index(person)


def test_the_same_bytes_of_two_users_are_stored_once_and_a_hash_alone_opens_none(host: Host) -> None:
    content = b"what ann and bob both have"
    name = hashlib.sha256(content).hexdigest()
    stored = ("root", f"find /var/lib/messiahs /var/tmp -name {name} 2>/dev/null")
    for person in ("ann", "bob"):
        host.path(f"/home/{person}/data").write_bytes(content)
        done = host.run(person, "run", "--module", "site", "--input", f"/home/{person}/data", "--", "cat", "data")
        assert (done.returncode, done.stdout) == (0, content.decode()), done.stderr
        assert len(host.shell(*stored).stdout.split()) == 1
    # Where it is stands in no command line, which everybody can read.
    (folder,) = {Path(path).parent.name for path in host.shell(*stored).stdout.split()}
    assert folder.startswith("contents-")
    shown = host.shell("eve", f"cat /proc/[0-9]*/cmdline 2>/dev/null | grep --text --count {folder[:-1]}[{folder[-1]}]")
    assert shown.stdout == "0\n"
    body = json.dumps({"key": "eves", "argv": ["cat", "x"], "inputs": [{"name": "x", "sha256": name}]})
    posted = f"curl --silent --unix-socket /run/messiahs/shared/site.sock http://module/v1/tasks --data '{body}'"
    asked = host.shell("eve", f"{posted} --header 'Content-Type: application/json'")
    assert json.loads(asked.stdout) == {"error": f"upload first: {name}"}, asked.stderr


@pytest.mark.parametrize("account", ["nobody", str(DEFAULT_TASK_UIDS[0])])
@pytest.mark.parametrize("module", ["site", "gate"])
def test_the_accounts_of_tasks_are_refused_also_by_a_module_without_a_machine(
    host: Host, module: str, account: str
) -> None:
    refused = host.run(account, "status", "--module", module)
    assert refused.returncode == 1
    assert "tasks here run as your account, and tasks may not use a module" in refused.stderr


def test_administrators_find_the_state_and_others_are_told_to_be_one(host: Host) -> None:
    found = host.run("root", "doctor", "--json")
    checks = {(each["module"], each["what"]): each for each in json.loads(found.stdout)["checks"]}
    everyone = checks["site", "users"]
    assert (everyone["level"], everyone["text"]) == (
        "ok",
        "every account of this host, at /run/messiahs/shared/site.sock",
    )
    assert checks["lab", "users"]["text"] == "the group hpc, at /run/messiahs/shared/lab.sock"
    refused = host.run("eve", "doctor")
    assert refused.returncode == 1
    assert "its state is elsewhere: name it with `--state`, as the account of the module or as root" in refused.stderr


def test_modules_are_listed_to_those_who_may_use_them(host: Host) -> None:
    def listed(person: str) -> list[str]:
        return [each["name"] for each in json.loads(host.run(person, "module", "list", "--json").stdout)["modules"]]

    assert (listed("root"), listed("bob"), listed("eve")) == (
        ["gate", "lab", "site"],
        ["gate", "lab", "site"],
        ["gate", "site"],
    )


def test_the_sockets_are_open_to_those_whom_the_topology_names(host: Host) -> None:
    site, lab = (host.path(f"/run/messiahs/shared/{name}.sock") for name in ("site", "lab"))
    assert (stat.S_IMODE(site.stat().st_mode), stat.S_IMODE(lab.stat().st_mode)) == (0o666, 0o660)
    link = host.path("/var/lib/messiahs/shared/site.sock")
    assert link.readlink() == Path("/run/messiahs/shared/site.sock")


def test_a_stopped_module_is_known_to_accounts_that_cannot_see_its_state(host: Host) -> None:
    task = host.run("eve", "submit", "--module", "site", "--quiet", "--", "true").stdout.strip()
    places = ("--state", "/var/lib/messiahs")
    assert host.run("root", "down", "/var/lib/shared.yaml", *places).returncode == 0
    try:
        listed = json.loads(host.run("eve", "module", "list", "--json").stdout)["modules"]
        assert [(each["name"], each["pid"]) for each in listed] == [("gate", None), ("site", None)]
        for words in (("status", task), ("status", "--module", "site")):
            asked = host.run("eve", *words)
            assert asked.returncode == 1
            # It was waited for before.
            assert "the module `site` is away" in asked.stderr
            assert "the module `site` is not running" in asked.stderr
            assert asked.stderr.rstrip().endswith("ask its administrator to start it")
    finally:
        again = ("up", "/var/lib/shared.yaml", "--detach", "--wait", "120", *places, "--sockets", "/run/messiahs")
        assert host.run("root", *again).returncode == 0
    assert host.run("eve", "wait", task).returncode == 0


def test_whoever_has_modules_of_their_own_finds_those_of_the_host_by_name(host: Host) -> None:
    assert host.shell("bob", "mkdir -p ~/.local/state/messiahs/own/mine/; touch $_/settings.json").returncode == 0
    try:
        done = host.run("bob", "run", "--module", "site", "--", "echo", "hello")
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
        there = "there are mine; the installation for all users of this host has it: name /run/messiahs with `--state`"
        asked = host.shell("bob", "MESSIAHS_STATE=~/.local/state/messiahs messiahs run --module site -- echo hello")
        assert there in asked.stderr
    finally:
        host.shell("bob", "rm -r ~/.local/state/messiahs")


def test_a_stopped_module_in_a_state_directory_that_others_may_enter_is_known_to_them(host: Host) -> None:
    host.path("/var/lib/open.yaml").write_text(
        "version: 1\nfederation: open\nsystems:\n  solo: {machine: {slots: 1}}\n"
    )
    up = ("up", "/var/lib/open.yaml", "--detach", "--wait", "120", "--state", "/var/lib/open")
    assert host.run("root", *up).returncode == 0
    for folder in ("/var/lib/open", "/var/lib/open/open"):
        host.path(folder).chmod(0o755)
    place = ("--module", "solo", "--state", "/var/lib/open")
    task = host.run("eve", "submit", "--quiet", *place, "--", "true").stdout.strip()
    assert host.run("root", "down", "/var/lib/open.yaml", "--state", "/var/lib/open").returncode == 0
    asked = host.run("eve", "status", task, *place)
    assert asked.returncode == 1
    assert "the module `solo` is not running" in asked.stderr
    assert host.run("root", *up).returncode == 0
    try:
        assert host.run("eve", "wait", task, *place).returncode == 0
    finally:
        assert host.run("root", "down", "/var/lib/open.yaml", "--state", "/var/lib/open").returncode == 0


def test_the_page_about_a_shared_installation_holds(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / "shared-installation.md").read_text(encoding="utf-8"))
    assert {account for account, _ in blocks} == {"root", "ann", "bob", "eve"}
    with shared_host(tmp_path) as host:
        try:
            for account, script in blocks:
                done = host.shell(account, f"cd\n{script}")
                assert (done.returncode, "Traceback" in done.stderr) == (0, False), (
                    f"{account}: {done.stdout}{done.stderr}"
                )
        finally:
            host.shell("ann", "messiahs down ~/own.yaml")
            host.shell("root", "messiahs down /etc/messiahs/host.yaml --state /var/lib/messiahs")
