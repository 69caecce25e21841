"""A federation that `up` runs, with one module `cs`, and modules that join it: each with a state of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from messiahs.cli.federation.temporary import remove_tasks
from messiahs.client import ModuleClient
from messiahs.errors import ClientError
from tests.commands import Forked
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import PATIENCE_SECONDS, eventually

JOINED_BY_POLICY = 'join { allow child when $peer.name ne "never"; }'
_TOPOLOGY = """
version: 1
federation: campus
defaults: {{update_period: {period}, policy: campus.policy}}
systems:
  cs: {{machine: {machine}}}
{others}"""
_POLICY = """
policy "campus" version 1;
accept from any {{ }}
accept from users {{ }}
{join}
"""


@dataclass(kw_only=True)
class Newcomer:
    """A module with a state of its own, and the process that runs it (mutable)."""

    name: str
    folder: Path
    process: "subprocess.Popen[str] | None" = None

    @property
    def directory(self) -> Path:
        """The folder of the module."""
        return self.folder / "campus" / self.name

    @property
    def told(self) -> str:
        """What it has printed."""
        return (self.folder / "printed").read_text()

    def start(self, *words: str) -> None:
        """Start `module run` with these options."""
        self.folder.mkdir(exist_ok=True)
        environment = {**os.environ, "MESSIAHS_STATE": str(self.folder)}
        command = [sys.executable, "-m", "messiahs.cli.main", "module", "run", self.name, *words]
        with (self.folder / "printed").open("a") as printed:
            self.process = Forked(command, stdout=printed, stderr=printed, text=True, env=environment)

    def joined(self, token: Path, address: str, *words: str) -> None:
        """Start it with a token, and a machine with one slot and its name as `site`."""
        machine = f"isolation=process,slots=1,site={self.name}"
        self.start("--join", address, "--token", str(token), "--machine", machine, *words)

    def ended(self) -> int:
        """Wait until the process ends by itself; return its exit code."""
        assert self.process is not None
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        self.process = None
        return code

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the process, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=PATIENCE_SECONDS)

    def machines(self, vector: str) -> int:
        """Return the number of machines in one of its sums; 0 while it does not answer."""
        return machines(self.client(patience=0), vector)

    def client(self, *, patience: float = PATIENCE_SECONDS) -> ModuleClient:
        """Return a user of the module."""
        return ModuleClient(self.folder / "campus" / f"{self.name}.sock", patience=patience)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a user's commands at the module."""
        return {**os.environ, "MESSIAHS_STATE": str(self.folder), "MESSIAHS_MODULE": self.name}

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a user's command at the module."""
        command = [sys.executable, "-m", "messiahs.cli.main", *words]
        process = Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@dataclass(kw_only=True)
class Campus:
    """The federation, and those that join it (mutable)."""

    federation: Federation
    folder: Path
    newcomers: list[Newcomer] = field(default_factory=list)
    tokens: int = 0

    @property
    def address(self) -> str:
        """Where `cs` listens."""
        return self.address_of("cs")

    def address_of(self, module: str) -> str:
        """Return where a module listens."""
        with self.federation.client(module) as client:
            return str(client.module()["address"])

    def token(self, *words: str) -> Path:
        """Make a token, and return its file."""
        self.tokens += 1
        file = self.folder / f"token-{self.tokens}"
        done = self.federation.run("join", "token", *words)
        assert done.returncode == 0, done.stderr
        file.write_text(done.stdout)
        return file

    def newcomer(self, name: str, *, state: str = "") -> Newcomer:
        """Return a module that has not joined yet."""
        made = Newcomer(name=name, folder=self.folder / f"state-{state or name}")
        self.newcomers.append(made)
        return made

    def machines(self, vector: str) -> int:
        """Return the number of machines in a sum of `cs`; 0 while it does not answer."""
        with self.federation.client() as client:
            return machines(client, vector)

    def waits_for(self, name: str) -> None:
        """Return when the request of a system waits for the administrator."""
        with self.federation.client() as client:
            eventually(lambda: name in [each["name"] for each in client.joining()["requests"]])

    def decide(self, *words: str) -> None:
        """Run a command of `messiahs join` that must succeed."""
        done = self.federation.run("join", *words)
        assert done.returncode == 0, done.stderr


def machines(client: ModuleClient, vector: str) -> int:
    """Return the number of machines in a sum of a module; 0 while it does not answer."""
    try:
        with client:
            return int(client.vectors()[vector]["machines"])
    except ClientError:
        return 0


@contextmanager
def campus(folder: Path, *, join: str = "", others: str = "", period: str = "500ms") -> Iterator[Campus]:
    """Start the federation with a block `join`, or without one; end it and all who joined.

    `others` are lines for further systems.
    """
    topology = folder / "campus.yaml"
    machine = fixed_machine(slots=1, attributes="{site: cs}")
    topology.write_text(_TOPOLOGY.format(machine=machine, others=others, period=period))
    (folder / "campus.policy").write_text(_POLICY.format(join=join))
    made = Campus(
        federation=Federation(topology=topology, name="campus", state=folder / "state", module="cs"), folder=folder
    )
    with brought_up(made.federation):
        try:
            yield made
        finally:
            for newcomer in made.newcomers:
                newcomer.end()
                remove_tasks(newcomer.folder)


def on(site: str) -> tuple[str, str]:
    """Return the options of a task that runs at one module."""
    return "--require", f'$site eq "{site}"'
