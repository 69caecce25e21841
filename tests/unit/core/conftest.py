"""Fixtures of the core's tests: modules whose invariants hold after every event and after every test."""

from collections.abc import Callable, Iterator

import pytest

from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, Trust
from tests.unit.core.rig import CHILD, NEIGHBORS, PARENT, SIBLING, Rig, make_module
from tests.unit.core.scripted_policy import ScriptedPolicy

ModuleFactory = Callable[..., Rig]


@pytest.fixture
def module() -> Iterator[ModuleFactory]:
    """Make modules that have started and have heard nothing yet."""
    made: list[Rig] = []

    def make(
        neighbors: tuple[Neighbor, ...] = NEIGHBORS,
        policy: Policy | None = None,
        *,
        trust: Trust = UNKNOWN,
        apart: tuple[SystemId, ...] = (),
        key: bytes = b"",
    ) -> Rig:
        rig = Rig(module=make_module(neighbors=neighbors, policy=policy, trust=trust, apart=apart, key=key))
        rig.resume()
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.check()


@pytest.fixture
def policy() -> ScriptedPolicy:
    """Make the policy of `rig`, whose verdict a test can change."""
    return ScriptedPolicy()


@pytest.fixture
def rig(module: ModuleFactory, policy: ScriptedPolicy) -> Rig:
    """Make a module without a machine, linked with a child, a sibling and a parent that each have room for four."""
    made = module(policy=policy)
    made.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        made.see(system)
    made.wait(10_000_000)
    return made
