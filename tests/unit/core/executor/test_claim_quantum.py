"""Turns: a claim that keeps a machine full ends after a while, so that whoever waits for the machine gets a share."""

from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedRequest, TaskState, TaskStatus
from messiahs.core.interface.rows import Row
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND
from messiahs.core.recovery import Remains
from messiahs.core.state.executor import QUANTUM_NS
from messiahs.core.task_filter.local_resources import reserved_places
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    ORIGIN,
    PARENT,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    remote,
    request,
    sent,
    status,
    statuses,
    tdv,
    transfer,
    view,
)

HALF_TURN_NS = QUANTUM_NS // 2


def granted(rig: Rig, number: int = 1, *, places: int = 4, origin: str = ORIGIN) -> SchedAccept:
    """Let the own machine, with four slots, grant a claim, and fill it with tasks."""
    asked = request(number, search=SearchId(bytes([number]) * 16), count=places, origin=origin)
    claim = message_in(rig.hear(PARENT, asked), SchedAccept)
    take(rig, claim, *(10 * number + place for place in range(places)))
    return claim


def take(rig: Rig, claim: SchedAccept, *members: int) -> None:
    tasks = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *tasks)))


def end(rig: Rig, member: int) -> int:
    """Let an attempt end, and give the window that its origin is told then."""
    rig.handle(AttemptStarted(attempt=remote(member=member)))
    return message_in(
        rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, ran_ns=SECOND)), TaskStatus
    ).window


def kept_busy(rig: Rig, claim: SchedAccept, *, members: range, for_ns: int) -> None:
    """Let one task after the other end, and the next one come."""
    for member in members:
        rig.wait(for_ns // len(members))
        end(rig, member)
        take(rig, claim, member + 1)


def test_a_claim_that_keeps_the_machine_full_for_a_turn_takes_nothing_more_and_ends(rig: Rig) -> None:
    rig.measure()
    claim = granted(rig)
    rig.wait(HALF_TURN_NS)
    assert end(rig, 10) == 4
    take(rig, claim, 14)
    rig.wait(HALF_TURN_NS)
    assert end(rig, 11) == 0
    assert message_in(rig.wait(SECOND), ClaimEnd).claim == claim.claim


def test_what_was_bound_before_the_origin_heard_of_it_still_runs(rig: Rig) -> None:
    rig.measure()
    claim = granted(rig)
    rig.wait(QUANTUM_NS)
    end(rig, 10)
    take(rig, claim, 14)
    assert rig.state.executor.attempts[remote(member=14)].status.state is TaskState.EXECUTING
    rig.wait(SECOND)
    (held,) = rig.state.executor.claims.values()
    assert (held.is_ending, held.live) == (True, 4)


def test_a_place_that_is_free_after_the_quantum_goes_to_the_first_request(rig: Rig) -> None:
    rig.measure()
    granted(rig)
    rig.wait(QUANTUM_NS)
    end(rig, 10)
    rig.wait(SECOND)
    end(rig, 11)
    assert message_in(rig.hear(PARENT, request(2, search=SearchId(b"2" * 16), origin="other")), SchedAccept).places == 1


def test_places_that_went_to_others_are_not_promised_twice_after_a_restart(rig: Rig) -> None:
    rig.measure()
    granted(rig)
    rig.wait(QUANTUM_NS)
    end(rig, 10)
    rig.wait(SECOND)
    rig.hear(PARENT, request(2, search=SearchId(b"2" * 16), origin="other"))
    executor = rig.state.executor
    rows: tuple[Row, ...] = (
        rig.state.counters,
        *(claim.row for claim in executor.claims.values()),
        *executor.attempts.values(),
    )
    after = Rig(module=make_module())
    after.resume(Remains(rows=rows))
    after.measure()
    resumed = after.state.executor.claims.values()
    assert [claim.is_ending for claim in resumed] == [True, False]
    assert sum(map(reserved_places, resumed)) <= 4


def test_a_claim_that_leaves_room_for_others_continues(rig: Rig) -> None:
    rig.measure()
    claim = granted(rig, places=3)
    kept_busy(rig, claim, members=range(12, 22), for_ns=MINUTE)
    assert end(rig, 22) > 0


def test_turns_become_longer_while_nobody_else_comes_and_short_again_when_somebody_does(rig: Rig) -> None:
    rig.measure()
    turns = []
    for number, origin in ((1, ORIGIN), (2, ORIGIN), (3, ORIGIN), (4, "other")):
        granted(rig, number, origin=origin)
        turns.append(rig.state.executor.quantum_ns // SECOND)
        rig.wait(rig.state.executor.quantum_ns)
        for place in range(4):
            rig.handle(AttemptEnded(attempt=remote(member=10 * number + place), exit_code=0, ran_ns=SECOND))
        rig.wait(SECOND)
    assert turns == [5, 10, 20, 5]


def waiting_after_its_turn(rig: Rig) -> None:
    """Let a child run a task of an array, end the claim, and be full."""
    rig.see(CHILD)
    ((_, ask),) = sent(rig.submit(9), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=1, window=1))
    rig.see(CHILD, view(free_slots=0))
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.EXECUTING), window=0))
    rig.wait(30 * SECOND)
    rig.hear(CHILD, ClaimEnd(claim=CLAIM))
    rig.hear(CHILD, statuses(status(attempt(member=1)), window=0))


def test_an_origin_whose_turn_is_over_lets_others_ask_first(rig: Rig) -> None:
    waiting_after_its_turn(rig)
    seen = rig.see(CHILD, view(free_slots=1))
    assert sent((*seen, *rig.wait(150 * MILLISECOND)), SchedRequest) == ()
    assert len(sent(rig.wait(150 * MILLISECOND), SchedRequest)) == 1


def test_an_origin_that_had_no_turn_asks_at_once(rig: Rig) -> None:
    waiting_after_its_turn(rig)
    rig.submit(9, tdv=tdv(user="bea"), key="other")
    ((_, ask),) = sent(rig.see(CHILD, view(free_slots=1)), SchedRequest)
    assert ask.tdv == tdv(user="bea")


def test_the_longer_ago_a_turn_was_the_sooner_its_origin_asks(rig: Rig) -> None:
    waiting_after_its_turn(rig)
    rig.wait(8 * QUANTUM_NS)
    seen = rig.see(CHILD, view(free_slots=1))
    assert len(sent((*seen, *rig.wait(2 * MILLISECOND)), SchedRequest)) == 1
