"""Modules that a test starts and ends one by one, each with its own wall clock, or with its state wiped.

`python -m tests.live.lab FOLDER` is such a daemon: the real one, with a wall clock that is ahead by the seconds in
FOLDER/wall.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.cli.federation.temporary import remove_tasks
from messiahs.config.topology.reading import load_topology
from messiahs.daemon.__main__ import run_daemon
from messiahs.daemon.process.environment import daemon_environment
from messiahs.daemon.process.pid_files import end_modules
from tests.commands import Forked
from tests.live.conftest import ROOT, Federation
from tests.live.wall_clocks import WALL, follow_wall
from tests.waiting import eventually

_WRITTEN = ("settings.json", "certificate.pem", "key.pem")
"""Files of the administrator in the folder of a module."""


_TOPOLOGY = """
version: 1
federation: lab
defaults: {{policy: {folder}/short.policy, update_period: 500ms}}
systems:
{systems}
"""
_SHORT_LEASES = """
policy "a short lease" version 1;
accept from any {{}}
accept from users {{}}
timeouts {{ lease {seconds}s; }}
"""


@dataclass(slots=True, kw_only=True)
class Lab:
    """A federation without a supervisor (its daemons come and go)."""

    federation: Federation
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, module: str, *, defect: str = "") -> None:
        """Start a daemon, optionally with a defect (defective_daemons.py), and wait until it answers."""
        folder = self.federation.folder(module)
        program = ("tests.live.defective_daemons", str(folder), defect) if defect else ("tests.live.lab", str(folder))
        command = [sys.executable, "-m", *program]
        with (folder / "daemon.log").open("ab") as log:
            self.daemons[module] = Forked(
                command, cwd=ROOT, env=daemon_environment(), stdout=log, stderr=log, start_new_session=True
            )
        eventually(lambda: _answers(folder.parent / f"{module}.sock"))

    def set_wall(self, module: str, seconds: int) -> None:
        """Set the wall clock of a module forward or back."""
        (self.federation.folder(module) / WALL).write_text(str(seconds))

    def kill(self, module: str, *, starter: bool = False) -> None:
        """Kill -9 a daemon, and optionally its starter (and so its tasks)."""
        self.daemons[module].kill()
        self.daemons.pop(module).wait(timeout=60)
        if starter:
            os.kill(self.federation.pid(module, "starter"), signal.SIGKILL)

    def wipe(self, module: str) -> None:
        """Remove everything that a module stored; settings and keys stay."""
        for entry in self.federation.folder(module).iterdir():
            if entry.name not in _WRITTEN:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@contextmanager
def short_lease_lab(folder: Path, systems: str, *, seconds: int) -> Iterator[Lab]:
    """Start systems (in YAML, one per line) with leases of so many seconds; users submit at `home`."""
    (folder / "short.policy").write_text(_SHORT_LEASES.format(seconds=seconds))
    topology = folder / "lab.yaml"
    topology.write_text(_TOPOLOGY.format(folder=folder, systems=indent(dedent(systems).strip(), "  ")))
    with lab(topology, name="lab", module="home") as made:
        yield made


@contextmanager
def lab(topology: Path, *, name: str, module: str) -> Iterator[Lab]:
    """Start every module of a topology, and end them afterwards."""
    state = topology.parent
    directory = federation_directory(state, name)
    made = Lab(federation=Federation(topology=topology, name=name, state=state, module=module))
    settings = prepare(load_topology(topology), directory)
    try:
        for one in settings:
            made.start(one.name)
        yield made
    finally:
        end_modules(directory)
        for daemon in made.daemons.values():
            daemon.wait(timeout=60)
        remove_tasks(state)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0


if __name__ == "__main__":
    _folder = Path(sys.argv[1])
    follow_wall(_folder)
    sys.exit(run_daemon(_folder / "settings.json"))
