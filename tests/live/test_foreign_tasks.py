"""Sites of two ordinary people of one host: tasks of the other are refused unless the owner lends the account."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.live.shared_host import Host, shared_host
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.live
_OWNERS: Final = {"north": "ann", "south": "bob"}
_TEXT: Final = "it takes no tasks of other sites: it has no sandboxes, and its account is not lent to them"
_HOME: Final = "cd; export MESSIAHS_STATE=$HOME/s\n"


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

    def describe(self, site: str, more: str = "") -> None:
        """Write the topology file of a site; `more` are keys of its machine."""
        (other,) = set(_OWNERS) - {site}
        lines = ["version: 1", "federation: pact", "defaults: {update_period: 200ms}", "systems:"]
        for name, what in (
            (site, f"machine: {{isolation: process, slots: 1, attributes: {{site: {site}}}{more}}}"),
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
    words = "messiahs submit --quiet --require '$site eq \"north\"' -- id -un"
    task = sites.shell("south", words).strip()
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


def test_tasks_of_the_own_site_run_as_the_person_who_runs_it(sites: Sites) -> None:
    assert sites.shell("south", "messiahs run --require '$site eq \"south\"' -- id -un") == "bob\n"
