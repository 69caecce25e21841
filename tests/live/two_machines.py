"""A federation of two machines of two slots below one module, where users submit; its leases are short."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.shared_folders import open_to_all
from tests.waiting import eventually

_TOPOLOGY = """version: 1
federation: office
defaults: {policy: office.policy, update_period: 500ms}
systems:
  top:   {}
  left:  {parent: top, machine: LEFT}
  right: {parent: top, machine: RIGHT}
"""
_POLICY = 'policy "office"; accept from any { } accept from users { } timeouts { lease 10s; kill_grace 2s; }'
_ENDLESS = "while [ ! -e '{}' ]; do sleep 0.1; done"


@contextmanager
def two_machines(folder: Path) -> Iterator[Federation]:
    """Start the federation, and end it."""
    folder.mkdir(exist_ok=True)
    left, right = (fixed_machine(slots=2, attributes=f"{{side: {name}}}") for name in ("left", "right"))
    (folder / "office.yaml").write_text(_TOPOLOGY.replace("LEFT", left).replace("RIGHT", right))
    (folder / "office.policy").write_text(_POLICY)
    made = Federation(topology=folder / "office.yaml", name="office", state=folder / "state", module="top")
    with brought_up(made):
        until_machines(made, 2)
        yield made


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that tasks of any account can reach and write to."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        open_to_all(Path(folder))
        yield Path(folder)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a federation among the tests of a file, each of which ends what it begins."""
    with two_machines(tmp_path_factory.mktemp("office")) as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that tasks of any account can reach and write to."""
    with open_folder() as made:
        yield made


def until_machines(federation: Federation, count: int) -> None:
    """Wait until the module at the top sees so many machines."""
    eventually(lambda: federation.vectors("top")["up"]["machines"] == count, f"{count} machines")


def begin(federation: Federation, ends_with: Path, *, at: str = "", name: str = "") -> tuple[str, str]:
    """Submit a task that runs until a file exists, wait until it runs, and return its id and its machine."""
    where = ("--require", f'$side eq "{at}"') if at else ()
    words = ("--set", f"kind={name}", *where, "--", "sh", "-c", _ENDLESS.format(ends_with))
    task = federation.submit(*words)
    eventually(lambda: federation.status(task)["substate"] == "running", task)
    return task, str(federation.status(task)["executed_on"])


def finish(federation: Federation, task: str) -> dict[str, Any]:
    """Wait until a task has finished."""
    eventually(lambda: federation.status(task)["state"] == "finished", task)
    return federation.status(task)


def machines_of(federation: Federation, array: str) -> set[str]:
    """Return where the members of an array have run."""
    return {str(member["executed_on"]) for member in federation.members(array)}


def neighbors(federation: Federation, module: str) -> dict[str, dict[str, Any]]:
    """Return the neighbors of a module by name."""
    with federation.client(module) as client:
        return {str(each["name"]): each for each in client.neighbors()}
