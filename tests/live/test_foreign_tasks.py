"""Sites of two ordinary people of one host: tasks of the other are refused unless they run in boxes of bubblewrap.

Or the owner lends the account.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.live.shared_host import Host, shared_host
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.live
_OWNERS: Final = {"north": "ann", "south": "bob"}
_TEXT: Final = "it takes no tasks of other sites: it has no sandboxes, and its account is not lent to them"
_HOME: Final = "cd; export MESSIAHS_STATE=$HOME/s\n"
_ON_NORTH: Final = "--require '$site eq \"north\"'"
_TRIES: Final = """
exec 2>/dev/null
for file in /home/ann/secret /home/ann/s/pact/tls/* /home/ann/s/pact/north/*; do test -e $file && echo saw $file; done
for folder in /home/ann /root /run /var/lib; do test -z "$(ls -A $folder)" || echo saw into $folder; done
find / -path /usr -prune -o -name secret -print
kill -0 {daemon} && echo reached the daemon
grep -l sleep /proc/[0-9]*/comm && echo saw a process
unshare --user --map-root-user true && echo made a namespace
grep Cap /proc/self/status | grep -v 0000000000000000
for folder in / /etc /usr /task /dev; do touch $folder/x && echo wrote to $folder; done
id -un; pwd; touch here && ls
"""


class Sites:
    """Both sites, of one module each (mutable)."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ports = {name: free_port() for name in _OWNERS}
        self._processes: dict[str, int] = {}

    def shell(self, site: str, script: str) -> str:
        """Run a script as the owner of a site; return what it prints."""
        done = self._host.shell(_OWNERS[site], _HOME + script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def describe(self, site: str, more: str = "", *, isolation: str = "process") -> None:
        """Write the topology file of a site; `more` are keys of its machine."""
        (other,) = set(_OWNERS) - {site}
        lines = ["version: 1", "federation: pact", "defaults: {update_period: 200ms}", "systems:"]
        for name, what in (
            (site, f"machine: {{isolation: {isolation}, slots: 2, attributes: {{site: {site}}}{more}}}"),
            (other, "external: true, trust: theirs.pem"),
        ):
            above = ", parent: north" if name == "south" else ""
            lines.append(f"  {name}: {{host: 127.0.0.1, port: {self._ports[name]}{above}, {what}}}")
        self.shell(site, "cat >site.yaml <<'END'\n" + "\n".join(lines) + "\nEND\n")

    def exchange_roots(self) -> None:
        """Make a root at each first run, which then asks for the other root, and copy the roots by hand."""
        roots = {}
        for site in _OWNERS:
            self.shell(site, f"! messiahs module run {site} --topology site.yaml 2>said")
            roots[site] = self.shell(site, "cat s/pact/tls/root.pem")
        for site, other in (("north", "south"), ("south", "north")):
            self.shell(site, f"cat >theirs.pem <<'END'\n{roots[other]}END\n")

    def start(self, site: str) -> None:
        """Start the module of a site, and wait until it answers."""
        script = f"nohup messiahs module run {site} --topology site.yaml >said 2>&1 </dev/null & echo $!"
        self._processes[site] = int(self.shell(site, script))
        eventually(lambda: self._host.shell(_OWNERS[site], f"{_HOME}messiahs module vectors").returncode == 0)

    def daemon(self, site: str) -> int:
        """Return the process of the module of a site."""
        return self._processes[site]

    def end(self, site: str) -> None:
        """End the module of a site."""
        process = self._processes.pop(site)
        os.kill(process, signal.SIGTERM)
        eventually(lambda: not Path(f"/proc/{process}").exists() or _is_zombie(process))

    def end_all(self) -> None:
        """End what runs."""
        for site in list(self._processes):
            self.end(site)


def _is_zombie(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith("Z")


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    if os.geteuid() != 0:
        pytest.skip("only root has a mount namespace and becomes other accounts")
    with shared_host(tmp_path) as host:
        made = Sites(host)
        for site in _OWNERS:
            made.describe(site)
        made.exchange_roots()
        try:
            for site in _OWNERS:
                made.start(site)
            yield made
        finally:
            made.end_all()


def test_a_task_of_another_site_is_refused_with_the_reason_until_the_owner_lends_the_account(sites: Sites) -> None:
    task = sites.shell("south", f"messiahs submit --quiet {_ON_NORTH} -- id -un").strip()
    eventually(lambda: _TEXT in sites.shell("south", f"messiahs explain {task}"), "a refusal with its reason")
    notes = sites.shell("north", "messiahs module list")
    assert "tasks of other sites are refused here" in notes
    assert "`foreign_tasks: run-with-my-rights`" in notes
    assert "own account, and can read its keys and database, but none of other sites" in sites.shell(
        "north", "messiahs doctor || true"
    )
    sites.end("north")
    sites.describe("north", ", foreign_tasks: run-with-my-rights")
    sites.start("north")
    sites.shell("south", f"messiahs wait {task}")
    assert sites.shell("south", f"messiahs logs {task}") == "ann\n"
    assert "also those of other sites" in sites.shell("north", "messiahs doctor || true")


def _status(sites: Sites, site: str, task: str) -> dict[str, Any]:
    (found,) = json.loads(sites.shell(site, f"messiahs status {task} --json"))["tasks"]
    return dict(found)


def _running_with_a_secret(sites: Sites) -> str:
    """Start a task of the owner of the north there, and return its id when it has a file in its folder."""
    script = "echo own >secret; echo ready; exec sleep 600"
    task = sites.shell("north", f"messiahs submit --quiet {_ON_NORTH} -- sh -c '{script}'").strip()
    eventually(lambda: sites.shell("north", f"messiahs logs {task}") == "ready\n")
    return task


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs the package bubblewrap")
def test_in_a_box_a_task_of_another_site_runs_and_reaches_nothing_of_the_account(sites: Sites) -> None:
    foreign = sites.shell("south", f"messiahs submit --quiet {_ON_NORTH} -- id -un").strip()
    eventually(lambda: _TEXT in sites.shell("south", f"messiahs explain {foreign}"), "a refusal with its reason")
    sites.end("north")
    sites.describe("north", isolation="bubblewrap")
    sites.start("north")
    sites.shell("south", f"messiahs wait {foreign}")
    assert sites.shell("south", f"messiahs logs {foreign}") == "ann\n"
    sites.shell("north", "echo of ann >secret")
    own = _running_with_a_secret(sites)
    daemon = sites.daemon("north")
    assert sites.shell("north", f"kill -0 {daemon}; cat secret") == "of ann\n"
    tries = _TRIES.format(daemon=daemon)
    for site in _OWNERS:
        sites.shell(site, f"cat >tries <<'END'\n{tries}\nEND\n")
        seen = sites.shell(site, f"messiahs run --input tries {_ON_NORTH} -- sh tries")
        assert seen == "ann\n/task/work\nhere\ntries\n"
    assert _status(sites, "north", own)["substate"] == "running"
    sites.shell("north", f"messiahs cancel {own}; messiahs wait {own} || true")
    _check_records(sites, own=own, foreign=foreign)


def _check_records(sites: Sites, *, own: str, foreign: str) -> None:
    """Check that tasks in boxes are recorded as such, with what an account lacks that may divide no control group."""
    record = _status(sites, "north", own)["containment"]
    assert record["isolation"] == "bubblewrap"
    assert record["lacks"].startswith("no control groups: ")
    shown = f"{own} ran in a sandbox; its machine reports: {record['lacks']}"
    assert shown in sites.shell("north", f"messiahs status {own}")
    assert _status(sites, "south", foreign)["containment"] == record
    told = sites.shell("north", "messiahs doctor || true")
    assert "tasks run in sandboxes of bubblewrap, network: loopback" in told


def test_tasks_of_the_own_site_run_as_the_person_who_runs_it(sites: Sites) -> None:
    assert sites.shell("south", "messiahs run --require '$site eq \"south\"' -- id -un") == "bob\n"
