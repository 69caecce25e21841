"""A hop that restarts without a neighbor on the path of a claim: it forgets the claim, and the other side hears so."""

import pytest

from messiahs.core.interface.actions import Forget, SendControl
from messiahs.core.interface.messages import ClaimEnd, SchedRequest, TaskState, TaskStatusQuery
from messiahs.core.interface.rows import PassedClaimRow, RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    NEIGHBORS,
    PARENT,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    reported,
    sent,
    status,
    statuses,
    tdv,
)

ROW = PassedClaimRow(id=CLAIM, toward_origin=PARENT, toward_executor=CHILD, tdv=tdv(), slots=1)
FORGOTTEN = ClaimEnd(claim=CLAIM, is_forgotten=True)


def _without(*departed: SystemId) -> Rig:
    neighbors = tuple(each for each in NEIGHBORS if each.system not in departed)
    return Rig(module=make_module(neighbors=neighbors))


@pytest.mark.parametrize("departed", [(CHILD,), (PARENT,), (CHILD, PARENT)])
def test_a_hop_drops_a_claim_if_a_neighbor_on_its_path_has_departed(departed: tuple[SystemId, ...]) -> None:
    hop = _without(*departed)
    assert hop.resume(Remains(rows=(ROW,))) == (Forget(key=(RowKind.PASSED_CLAIM, CLAIM)),)
    assert hop.state.hop.passed == {}


def test_a_hop_keeps_a_claim_that_passes_between_two_neighbors() -> None:
    hop = _without()
    assert hop.resume(Remains(rows=(ROW,))) == ()
    assert hop.state.hop.passed == {CLAIM: ROW}


def test_the_origins_side_hears_that_a_claim_is_forgotten_when_the_executors_side_has_departed() -> None:
    hop = _without(CHILD)
    hop.resume(Remains(rows=(ROW,)))
    hop.greet(PARENT)
    query = TaskStatusQuery(claim=CLAIM, attempts=())
    assert hop.hear(PARENT, query) == (SendControl(to=PARENT, message=FORGOTTEN),)


def test_a_hop_says_nothing_of_attempts_that_may_still_run_at_an_executor_that_has_departed() -> None:
    hop = _without(CHILD)
    hop.resume(Remains(rows=(ROW,)))
    hop.greet(PARENT)
    assert reported(hop.hear(PARENT, TaskStatusQuery(claim=CLAIM, attempts=(attempt(),)))) == "no_such_claim"


def test_the_executors_side_is_told_to_end_a_claim_when_the_origins_side_has_departed() -> None:
    hop = _without(PARENT)
    hop.resume(Remains(rows=(ROW,)))
    hop.greet(CHILD)
    renewal = statuses(status(attempt(), TaskState.EXECUTING), renewal=1)
    assert hop.hear(CHILD, renewal) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)


def test_the_next_attempt_waits_for_the_lease_though_a_hop_has_forgotten_the_claim(rig: Rig) -> None:
    """The executor may still run the first one, and nobody on the path can ask it any more."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), renewal=1))
    rig.hear(CHILD, FORGOTTEN)
    assert rig.state.origin.tasks[TASK].attempt == 1
    rig.wait(LEASE_NS)
    assert attempt() in rig.state.origin.claims[CLAIM].bound
    rig.wait(LEASE_NS)
    assert rig.state.origin.claims == {}
