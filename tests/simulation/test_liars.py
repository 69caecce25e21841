"""Machines that attract tasks and do not deliver delay the tasks of an origin by a bounded time."""

import pytest

from messiahs.core.interface.limits import FIRST_LEASE_NS
from messiahs.core.model.ids import SystemId
from tests.simulation.lying_machines import GATE, HOME, Lie, World


@pytest.fixture(scope="module")
def honest_ns() -> int:
    """Return how long the tasks take without a liar."""
    return World(None).run()


@pytest.mark.parametrize("is_local", [False, True], ids=["of another site", "of the own site"])
@pytest.mark.parametrize("lie", Lie)
@pytest.mark.parametrize("above", [HOME, GATE])
def test_tasks_beside_a_liar_take_at_most_twice_as_long_and_a_lease(
    lie: Lie, above: SystemId, honest_ns: int, *, is_local: bool
) -> None:
    assert World(lie, above=above, is_local=is_local).run() <= 2 * honest_ns + FIRST_LEASE_NS
