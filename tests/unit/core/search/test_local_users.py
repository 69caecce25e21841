"""Requests of local users to their own module."""

from messiahs.core.interface.messages import SchedRequest
from tests.unit.core.rig import Rig, sent
from tests.unit.core.scripted_policy import ScriptedPolicy


def test_local_users_get_no_more_places_of_the_own_machine_than_a_limit_allows(
    rig: Rig, policy: ScriptedPolicy
) -> None:
    policy.limit_slots = 2
    rig.measure(slots=4)
    ((_, ask),) = sent(rig.submit(members=5), SchedRequest)
    (claim,) = rig.state.executor.claims.values()
    # Others are asked for the rest: local users are not gated for that.
    assert ask.count == 3
    assert claim.row.places == 2
