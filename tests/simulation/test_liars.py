"""Machines that attract tasks and do not deliver delay the tasks of an origin by a bounded time."""

import pytest

from messiahs.core.interface.limits import FIRST_LEASE_NS
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE
from messiahs.core.relay.deliveries import GROWTH_PER_RESULT
from tests.simulation.lying_machines import GATE, HOME, LIAR_SLOTS, Lie, World

LONG_NS = 10 * MINUTE
COUNT = 150


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


@pytest.mark.parametrize(("lie", "most"), [(Lie.NEVER_ENDS, 1), (Lie.BAITS, 1 + GROWTH_PER_RESULT)])
def test_a_machine_of_another_site_that_only_claims_to_run_long_tasks_gets_no_more_of_them(lie: Lie, most: int) -> None:
    assert World(lie, run_ns=LONG_NS).held_after(3 * LONG_NS, count=COUNT) == most


def test_an_honest_machine_of_another_site_is_full_of_long_tasks_minutes_after_their_second_round() -> None:
    world = World(None, is_converted=True, run_ns=LONG_NS)
    assert world.held_after(2 * LONG_NS + 6 * MINUTE, count=COUNT) == LIAR_SLOTS
