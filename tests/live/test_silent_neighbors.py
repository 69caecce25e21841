"""What a policy says about neighbors that send nothing: they are polled, declared down, or queried first (6.1)."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.core.interface.actions import Decision, SendControl
from messiahs.core.interface.messages import SystemStatusQuery
from messiahs.trace.show.reader import read_segments, segment_files
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

_TOPOLOGY = """version: 1
federation: calm
defaults: {{policy: quiet.policy, update_period: 300ms}}
systems:
  top: {{policy: open.policy}}
  desk: {{parent: top, machine: {machine}}}
"""
_OPEN = 'policy "open"; accept from any {{ }} accept from users {{ }} {rules}\n'
_PATIENT = "timeouts { input 1h; }"
_QUIET = "advertise every 1h { }"


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a parent, whose policy each test loads, and a machine that hardly ever sends anything by itself."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "calm.yaml").write_text(_TOPOLOGY.format(machine=fixed_machine()))
    (folder / "open.policy").write_text(_OPEN.format(rules=_PATIENT))
    (folder / "quiet.policy").write_text(_OPEN.format(rules=f"{_QUIET} {_PATIENT}"))
    made = Federation(topology=folder / "calm.yaml", name="calm", state=folder / "state", module="top")
    with brought_up(made):
        yield made


@contextmanager
def _under(calm: Federation, rules: str) -> Iterator[None]:
    """Let the parent work with these rules, and then with its own file again."""
    with calm.client() as client:
        assert client.load_policy(_OPEN.format(rules=rules))["problems"] == []
        try:
            yield
        finally:
            client.load_policy(None)


@contextmanager
def _frozen(calm: Federation) -> Iterator[None]:
    pid = calm.pid("desk", "daemon")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def _recorded(calm: Federation, into: list[str]) -> Iterator[None]:
    """Note in their order where the parent sends queries, and whom it declares down."""
    folder: Path = calm.folder("top") / "trace"
    before = set(segment_files([folder])) if folder.is_dir() else set()
    assert calm.run("trace", "start", "--module", "top", "--size", "8MiB").returncode == 0
    yield
    assert calm.run("trace", "stop", "--module", "top").returncode == 0
    for segment in read_segments(file for file in segment_files([folder]) if file not in before):
        for record in segment.records():
            for action in record.actions:
                match action:
                    case SendControl(to=to, message=SystemStatusQuery()):
                        into.append(f"query {to}")
                    case Decision(what="neighbor_down", task=task, text=text):
                        into.append(f"down {task}: {text}")
                    case _:
                        pass


def _machines(calm: Federation) -> int:
    return int(calm.vectors("top")["up"]["machines"])


def test_a_module_that_polls_asks_neighbors_whose_vectors_are_old(calm: Federation) -> None:
    eventually(lambda: _machines(calm) == 1)
    found: list[str] = []
    with _recorded(calm, found), _under(calm, "timeouts { poll 1s; input 1h; }"):
        eventually(lambda: calm.vectors("top")["views"]["desk"]["age"] > 1)
        eventually(lambda: calm.vectors("top")["views"]["desk"]["age"] < 1)
    assert set(found) == {"query desk"}


def test_a_frozen_neighbor_is_declared_down_at_once_where_the_policy_says_so(calm: Federation) -> None:
    eventually(lambda: _machines(calm) == 1)
    found: list[str] = []
    with _recorded(calm, found), _frozen(calm), _under(calm, "timeouts { input 3s then down; }"):
        eventually(lambda: _machines(calm) == 0)
    assert found[0] == "down desk: input timeout"
    assert "query desk" not in found


def test_a_frozen_neighbor_is_queried_first_otherwise(calm: Federation) -> None:
    with _under(calm, "timeouts { poll 1s; input 1h; }"):
        eventually(lambda: _machines(calm) == 1)
    found: list[str] = []
    with _recorded(calm, found), _frozen(calm), _under(calm, "timeouts { input 3s; }"):
        eventually(lambda: _machines(calm) == 0)
    assert found[:2] == ["query desk", "down desk: input timeout"]
