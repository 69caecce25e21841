"""A real federation on this machine: `messiahs up` with real daemons, TLS and processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from messiahs.client import ModuleClient
from messiahs.client.locating import module_of
from tests.commands import Command, Forked
from tests.shared_folders import open_to_all
from tests.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
_ASK = """
import http.client, os, socket, sys
folder, name, uid, method, path, body = sys.argv[1:]
os.chdir(folder)
peer = socket.socket(socket.AF_UNIX)
os.seteuid(int(uid))
peer.connect(name)
asked = http.client.HTTPConnection("module")
asked.sock = peer
asked.request(method, path, body.encode() or None)
answer = asked.getresponse()
print(answer.status, answer.read().decode())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """A running topology; every command runs as a user would run it."""

    topology: Path
    name: str
    state: Path
    module: str
    """The module at which users submit."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the commands."""
        return {**os.environ, "MESSIAHS_STATE": str(self.state), "MESSIAHS_MODULE": self.module}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        command = [sys.executable, "-m", "messiahs.cli.main", *words]
        pipe = subprocess.PIPE
        # The interpreter reads this variable at its start.
        kind = Command if "PYTHONPATH" in os.environ else Forked
        return kind(command, stdout=pipe, stderr=pipe, text=True, env=self.environment)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def document(self, *words: str) -> dict[str, Any]:
        """Run a command that must succeed, and return the JSON document that it prints."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["schema"] == 1
        return dict(document)

    def submit(self, *words: str) -> str:
        """Submit a task, and return its id."""
        done = self.run("submit", "--quiet", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def client(self, module: str = "") -> ModuleClient:
        """Return a user of a module, who waits while the module starts; to be closed.

        Tests read with it what they wait for: a command at each look would keep a processor busy.
        """
        return ModuleClient(self.folder(module or self.module).with_suffix(".sock"), patience=PATIENCE_SECONDS)

    def status(self, task: str) -> dict[str, Any]:
        """Return the status document of one task or array."""
        with self.client(module_of(task)) as client:
            (found,) = client.tasks(task)["tasks"]
        return dict(found)

    def members(self, array: str) -> list[dict[str, Any]]:
        """Return the status documents of the members of an array."""
        with self.client(module_of(array)) as client:
            return list(client.tasks(array, members=True)["tasks"])

    def vectors(self, module: str = "") -> dict[str, Any]:
        """Return the vectors that a module sends, and its views of its neighbors."""
        with self.client(module) as client:
            return client.vectors()

    def status_code_for(self, uid: int, method: str, *, path: str, module: str, body: str = "") -> int:
        """Query the local API of a module as another user, and return the HTTP status code; only root can."""
        return self.answer_for(uid, method, path=path, module=module, body=body)[0]

    def answer_for(self, uid: int, method: str, *, path: str, module: str, body: str = "") -> tuple[int, str]:
        """Query the local API of a module as another user, and return the status code and the text; only root can."""
        # The process enters the folder as root, since other users cannot reach it.
        socket = self.folder(module).with_suffix(".sock")
        command = [sys.executable, "-c", _ASK, str(socket.parent), socket.name, str(uid), method, path, body]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        code, _, text = done.stdout.partition(" ")
        return int(code), text

    def up(self) -> None:
        """Bring the topology up."""
        done = self.run("up", str(self.topology), "--detach", "--wait", str(PATIENCE_SECONDS))
        assert done.returncode == 0, done.stdout + done.stderr

    def down(self) -> None:
        """Take the topology down."""
        done = self.run("down", str(self.topology))
        assert done.returncode == 0, done.stderr

    def pid(self, module: str, process: str) -> int:
        """Return the pid of a module's `daemon` or `starter`."""
        return int(json.loads((self.folder(module) / f"{process}.pid").read_text())["pid"])

    def kill(self, module: str, process: str) -> None:
        """Kill -9 the daemon or starter of a module."""
        os.kill(self.pid(module, process), signal.SIGKILL)

    def folder(self, module: str) -> Path:
        """Return the folder in which a module keeps its state."""
        return self.state / self.name / module


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a pair among the tests of a file, which must leave it unharmed."""
    yield from federation("pair", tmp_path_factory.mktemp("pair"), module="left")


@pytest.fixture
def own_pair(tmp_path: Path) -> Iterator[Federation]:
    """Start a pair for one test that harms it."""
    yield from federation("pair", tmp_path, module="left")


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share three modules in a chain among the tests of a file."""
    yield from federation("trio", tmp_path_factory.mktemp("trio"), module="root")


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Make a folder that tasks of any account can reach and write to."""
    folder = factory.mktemp("shared")
    open_to_all(folder)
    for depth, parent in enumerate(folder.parents):
        if depth < 2 or parent.name.startswith("pytest-"):
            parent.chmod(0o755)
    return folder


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that tasks of any account can write to."""
    return shared_folder(tmp_path_factory)


def federation(name: str, state: Path, *, module: str) -> Iterator[Federation]:
    topology = with_processes(name, state.with_name(f"{state.name}.yaml"))
    made = Federation(topology=topology, name=name, state=state, module=module)
    with brought_up(made):
        yield made


def with_processes(name: str, copy: Path) -> Path:
    """Copy a topology that is shipped, in which tasks become processes: tests give them folders of the machine."""
    shipped = (ROOT / "topologies" / f"{name}.yaml").read_text(encoding="utf-8")
    changed = shipped.replace("machine: {", "machine: {isolation: process, ").replace("../policies", f"{ROOT}/policies")
    copy.write_text(changed, encoding="utf-8")
    return copy


@contextmanager
def brought_up(made: Federation) -> Iterator[None]:
    """Start a federation; afterwards end it and remove the folders of its tasks."""
    with ended_with_its_tasks(made):
        made.up()
        yield


@contextmanager
def ended_with_its_tasks(made: Federation) -> Iterator[None]:
    """End a federation afterwards, and remove the folders of its tasks."""
    try:
        yield
    finally:
        made.down()
        remove_tasks(made.state)


def fixed_machine(*, slots: int = 1, **other: str) -> str:
    """Return the YAML of a machine with fixed values, whose tasks are processes; `other` replaces or adds values."""
    values = {
        "isolation": "process",
        "probe": "fixed",
        "nproc": slots,
        "slots": slots,
        "speed": 500,
        "load": "0%",
        "arch": "x86_64",
        "os": "Linux",
        "total_mem": "8GiB",
        "avail_mem": "8GiB",
        "total_disk": "200GiB",
        "avail_disk": "100GiB",
    }
    return "{" + ", ".join(f"{name}: {value}" for name, value in {**values, **other}.items()) + "}"
