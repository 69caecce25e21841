"""A third-party part decides in virtual time, also when it fails."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.policies import PolicySource
from messiahs.core.interface.actions import Action, Decision
from messiahs.core.interface.events import PolicyChanged
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.contract.part_example import install
from tests.simulation.policy_chain import LEAF, MIDDLE, OPEN, ROOT, chain, task

RESTING = f"{OPEN} rank candidates by resting(rest = 1h);"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example of docs/policy-parts.md."""
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("messiahs_resting", None)


def _ended_under(text: str, members: int) -> tuple[SimulatedFederation, list[str]]:
    """Run tasks in the chain with a policy in the middle, and return what was logged about parts."""
    source = PolicySource(file="x.policy", text=text, timeouts=Timeouts())
    federation, logged = chain({}), []

    def note(system: SystemId, action: Action) -> None:
        if isinstance(action, Decision) and action.what == "part_failed":
            logged.append(f"{system}: {action.task}: {action.text}")

    federation.observe = note
    federation.post(MIDDLE, PolicyChanged(policy=source.policy()))
    federation.post(ROOT, task(ROOT, members=members))
    federation.run(lambda: len(federation.ended) == members, until=Instant(30 * MINUTE))
    assert {row.executed_on for row in federation.ended.values()} == {LEAF}
    assert len(federation.ended) == members
    return federation, logged


def test_a_part_decides_and_its_module_keeps_its_state(place: Path) -> None:
    del place
    federation, logged = _ended_under(RESTING, 3)
    ((name, at),) = federation.members[MIDDLE].module.state.parts.states[PartKind.LOCATION]
    assert name == LEAF
    assert 0 < int(at) <= federation.now
    assert logged == []


def test_a_part_that_raises_is_logged_once_and_tasks_are_still_placed(place: Path) -> None:
    module = place / "messiahs_resting.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace("        since = query.at", '        raise KeyError("x")\n        since = query.at'))
    federation, logged = _ended_under(RESTING, 3)
    assert PartKind.LOCATION not in federation.members[MIDDLE].module.state.parts.states
    assert logged == ["middle: rank candidates: resting(rest = 1h): KeyError: 'x'; weighted_free_slots() decides"]
