"""Sites of one or two modules, each of which a process of `messiahs module run` runs.

The larger ones: `uni` with its child `phys`, and `chem` with its child `lab`; `chem` is below `uni`. Each of the two
sites has a root of its own, and only `uni` and `chem` know the root of the other site.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from messiahs.client import ModuleClient
from messiahs.errors import ClientError
from tests.commands import Command, Forked
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, eventually


@dataclass(kw_only=True)
class Site:
    """One site: its folder contains the topology file, the state and the root of the other site (mutable).

    `netns` is the network namespace of its host; empty: that of the tests.
    """

    name: str
    folder: Path
    netns: str = ""
    process: "subprocess.Popen[str] | None" = field(default=None)
    waiting: str = ""
    command: tuple[str, ...] = (sys.executable, "-m", "messiahs.cli.main")
    """The command line interface of its release."""

    @property
    def root(self) -> Path:
        """The file of the site's own root."""
        return self.folder / "state" / "pact" / "tls" / "root.pem"

    def start(self) -> "subprocess.Popen[str]":
        """Start the site's module in the foreground."""
        self.process = self.begin("module", "run", self.name, "--topology", str(self.folder / "site.yaml"))
        return self.process

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a user's command to its end."""
        process = self.begin(*words)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def document(self, *words: str) -> dict[str, Any]:
        """Run a command, and return the JSON document that it prints; an empty one if it fails."""
        done = self.run(*words, "--json")
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def end(self) -> int:
        """End the module as an init system would, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode

    def machines(self, vector: str) -> int:
        """Return the number of machines in a sum or in the view of a neighbor; 0 if there is none yet."""
        try:
            with self.client(patience=0) as client:
                vectors = client.vectors()
        except ClientError:
            return 0
        return int({**vectors, **vectors.get("views", {})}.get(vector, {"machines": 0})["machines"])

    def notes(self) -> list[str]:
        """Return what the module reports to its administrator."""
        (module,) = self.document("module", "list")["modules"]
        return list(module["notes"])

    def reason(self, other: str) -> str:
        """Return why a task that needs the other site waits, as far as the other site is concerned."""
        if not self.waiting:
            self.waiting = self.run("submit", "--require", '$site eq "nowhere"', "--", "true").stdout.strip()
        with self.client() as client:
            # Not known yet while the module has never run.
            reasons = [each for task in client.tasks(self.waiting)["tasks"] for each in task["reasons"]]
        found = (each["text"] for each in reasons if (each["module"], each["code"]) == (other, "unreachable"))
        return str(next(found, ""))

    def executed_on(self) -> str:
        """Return the machine of the last task."""
        with self.client() as client:
            return str(client.tasks()["tasks"][-1]["executed_on"])

    def members(self, array: str) -> list[dict[str, Any]]:
        """Return the status documents of the members of an array."""
        with self.client() as client:
            return list(client.tasks(array, members=True)["tasks"])

    def client(self, *, patience: float = PATIENCE_SECONDS) -> ModuleClient:
        """Return a connection with the module of the site."""
        return ModuleClient(self.folder / "state" / "pact" / f"{self.name}.sock", patience=patience)

    def begin(self, *words: str, stdin: int | None = None) -> "subprocess.Popen[str]":
        """Start a command, with the standard input of this process, or with the one that is named."""
        environment = {**os.environ, "MESSIAHS_STATE": str(self.folder / "state"), "MESSIAHS_MODULE": self.name}
        pipe = subprocess.PIPE
        host = ("nsenter", f"--net=/run/netns/{self.netns}") if self.netns else ()
        command = [*host, *self.command, *words]
        kind = Forked if command[0] == sys.executable else Command
        return kind(command, stdin=stdin, stdout=pipe, stderr=pipe, text=True, env=environment)


def leave(sites: "Sites") -> None:
    """End the modules that still run, and remove what the next ones in the same folders would find."""
    for site in sites.values():
        if site.process is not None and site.process.poll() is None:
            site.end()
        remove_tasks(site.folder / "state")


def exchange_roots(alpha: Site, beta: Site) -> None:
    """Make a root at each first run, which then asks for the other root, and copy the roots by hand."""
    for site in (alpha, beta):
        _, printed = site.start().communicate(timeout=PATIENCE_SECONDS)
        assert f"{site.folder / 'theirs.pem'} cannot be read" in printed
    shutil.copy(alpha.root, beta.folder / "theirs.pem")
    shutil.copy(beta.root, alpha.folder / "theirs.pem")


Sites = dict[str, Site]


@pytest.fixture
def described(tmp_path: Path) -> Iterator[Sites]:
    """Describe all four, with roots that were exchanged; nothing runs yet."""
    places = {"uni": tmp_path / "a", "phys": tmp_path / "a", "chem": tmp_path / "b", "lab": tmp_path / "b"}
    sites = {name: Site(name=name, folder=folder) for name, folder in places.items()}
    parents = {"phys": "uni", "chem": "uni", "lab": "chem"}
    ports = {name: free_port() for name in sites}
    for name, known in (("uni", ("uni", "phys", "chem")), ("chem", ("chem", "lab", "uni"))):
        lines = ["version: 1", "federation: pact", "defaults: {update_period: 200ms}", "systems:"]
        for other in known:
            above = f", parent: {parents[other]}" if other in parents else ""
            role = f"machine: {{isolation: process, slots: 1, attributes: {{site: {other}}}}}"
            if places[other] != places[name]:
                role = "external: true, trust: theirs.pem"
            lines.append(f"  {other}: {{host: 127.0.0.1, port: {ports[other]}{above}, {role}}}")
        sites[name].folder.mkdir()
        (sites[name].folder / "site.yaml").write_text("\n".join(lines) + "\n")
    exchange_roots(sites["uni"], sites["chem"])
    try:
        yield sites
    finally:
        leave(sites)


def started(sites: Sites) -> Sites:
    """Start all four, and wait until `phys` and `lab` know of every machine."""
    for site in sites.values():
        site.start()
    eventually(lambda: _are_linked(sites))
    return sites


def _are_linked(sites: Sites) -> bool:
    processes = [site.process for site in sites.values() if site.process is not None]
    ended = [process.communicate() for process in processes if process.poll() is not None]
    assert not ended, ended
    return [sites[name].machines("down") for name in ("phys", "lab")] == [4, 4]


def on(*names: str) -> tuple[str, str]:
    """Return a predicate for some machines."""
    return "--require", " or ".join(f'$site eq "{name}"' for name in names)


def bound(sites: Sites, name: str, *, bounds: str) -> None:
    """Set the bounds on bytes of a module that does not run."""
    file = sites[name].folder / "site.yaml"
    text = file.read_text()
    assert text.count(f"  {name}: {{") == 1
    file.write_text(text.replace(f"  {name}: {{", f"  {name}: {{bytes: {{{bounds}}}, "))
