"""Machines that attract tasks and do not deliver delay the tasks of an origin by a bounded time."""

import pytest

from messiahs.core.interface.limits import FIRST_LEASE_NS
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE
from messiahs.core.relay.deliveries import GROWTH_PER_RESULT, UNPROVEN_LIMIT
from tests.simulation.lying_machines import GATE, HOME, LIAR_SLOTS, Lie, World


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


@pytest.mark.parametrize(("lie", "results"), [(Lie.NEVER_ENDS, 0), (Lie.BAITS, 1)])
def test_a_machine_of_another_site_that_only_claims_to_run_long_tasks_gets_few_of_them(lie: Lie, results: int) -> None:
    world = World(lie, run_ns=HOUR)
    world.submit_long(100)
    assert world.held_after(20 * MINUTE) == UNPROVEN_LIMIT + results * GROWTH_PER_RESULT


def test_an_honest_machine_of_another_site_is_full_of_long_tasks_minutes_after_their_second_round() -> None:
    world = World(None, is_converted=True, run_ns=20 * MINUTE)
    world.submit_long(200)
    assert world.held_after(15 * MINUTE) == UNPROVEN_LIMIT
    assert world.held_after(35 * MINUTE) == LIAR_SLOTS
