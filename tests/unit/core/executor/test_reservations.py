"""Slots that are kept free for a task that needs several of them, while narrow tasks come and go."""

import pytest

from messiahs.core.executor import reservations
from messiahs.core.executor.reservations import PATIENCE_NS, UNUSED_READY_NS
from messiahs.core.interface.actions import Action, Decision, SendVector
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import AnswerTo, CancelRequested, LinkDown, TransferReceived
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedRequest, TaskStatus, TaskStatusAck
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Duration
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    SIBLING,
    TASK,
    Rig,
    accept,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
    view,
)

SLOTS = 4
WIDE = tdv(cpus=SLOTS, user="wide")


@pytest.fixture
def machine(module: ModuleFactory) -> Rig:
    """Make a machine of four slots that four narrow claims keep full, each with a running task."""
    rig = module()
    rig.greet(SIBLING, PARENT)
    rig.measure(slots=SLOTS)
    for member in range(1, SLOTS + 1):
        run(rig, member)
    return rig


def ask(rig: Rig, number: int, **said: object) -> tuple[Action, ...]:
    return rig.hear(PARENT, request(number, search=SearchId(number.to_bytes(16)), **said))


def run(rig: Rig, member: int) -> SchedAccept:
    """Let a narrow task run here."""
    claim = message_in(ask(rig, member, tdv=tdv(user=f"narrow{member}")), SchedAccept)
    attempt = remote(member=member)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, attempt)))
    rig.handle(AttemptStarted(attempt=attempt))
    return claim


def end(rig: Rig, member: int) -> tuple[Action, ...]:
    """Let a narrow task end, and its claim with it."""
    (claim,) = [each for each in rig.state.executor.claims.values() if remote(member=member) in each.attempts]
    ended = rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, ran_ns=SECOND))
    rig.hear(PARENT, TaskStatusAck(claim=claim.row.id, taken=(remote(member=member),)))
    return (*ended, *rig.hear(PARENT, ClaimEnd(claim=claim.row.id)))


def ask_wide(rig: Rig, number: int, **said: object) -> tuple[Action, ...]:
    return ask(rig, number, **{"tdv": WIDE, **said})


def reserve(rig: Rig) -> None:
    """Let a wide task ask until slots are reserved for it."""
    ask_wide(rig, 101)
    rig.wait(PATIENCE_NS)
    assert [each.what for each in only(ask_wide(rig, 102), Decision)][:1] == ["reserve"]


def is_granted(actions: tuple[Action, ...]) -> bool:
    return bool(sent(actions, SchedAccept))


def free_slots(rig: Rig) -> object:
    sdv = own_sdv(rig.state)
    assert sdv is not None
    return sdv.description()["free_slots"]


def test_slots_that_become_free_are_kept_for_the_wide_task_until_it_has_enough(machine: Rig) -> None:
    reserve(machine)
    for member in (1, 2, 3):
        end(machine, member)
        assert not is_granted(ask(machine, 10 + member))
        assert not is_granted(ask_wide(machine, 110 + member))
    end(machine, 4)
    assert not is_granted(ask(machine, 20))
    assert message_in(ask_wide(machine, 120), SchedAccept).places == 1
    assert machine.state.executor.reservation is None


def test_without_a_wait_of_some_seconds_nothing_is_reserved(machine: Rig) -> None:
    ask_wide(machine, 101)
    machine.wait(PATIENCE_NS - 1)
    ask_wide(machine, 102)
    assert machine.state.executor.reservation is None
    end(machine, 1)
    assert is_granted(ask(machine, 11))


def test_nothing_is_reserved_for_a_task_that_fits_wherever_another_ends(machine: Rig) -> None:
    for number in range(10):
        ask(machine, 50 + number, tdv=tdv(user="late"))
        machine.wait(SECOND)
    assert machine.state.executor.reservation is None
    end(machine, 1)
    assert is_granted(ask(machine, 90))


def test_nothing_is_reserved_for_a_task_that_this_machine_can_never_run(machine: Rig) -> None:
    for number in range(10):
        ask(machine, 50 + number, tdv=tdv(cpus=SLOTS + 1))
        machine.wait(SECOND)
    assert machine.state.executor.starved == {}
    assert machine.state.executor.reservation is None


def test_what_is_not_needed_for_the_wide_task_goes_to_others(machine: Rig) -> None:
    machine.measure(slots=2 * SLOTS)
    for member in range(5, 5 + SLOTS):
        run(machine, member)
    reserve(machine)
    for member in range(1, SLOTS + 1):
        end(machine, member)
    assert not is_granted(ask(machine, 30))
    end(machine, 5)
    assert message_in(ask(machine, 31, count=2), SchedAccept).places == 1


def test_neighbors_hear_of_free_slots_once_there_are_enough(machine: Rig) -> None:
    reserve(machine)
    for member in (1, 2, 3):
        end(machine, member)
        assert free_slots(machine) == 0
    end(machine, 4)
    assert free_slots(machine) == SLOTS
    assert {action.to for action in only(machine.wait(SECOND), SendVector)} >= {PARENT}


def test_a_claim_takes_nothing_after_its_next_task_while_slots_are_gathered(machine: Rig) -> None:
    machine.state.executor.quantum_ns = Duration(MINUTE)
    reserve(machine)
    ended = machine.end(AttemptEnded(attempt=remote(member=1), exit_code=0, ran_ns=SECOND))
    assert message_in(ended, TaskStatus).window == 0
    assert message_in(machine.wait(SECOND), ClaimEnd)


def test_a_reservation_that_nobody_uses_ends_and_is_not_given_again_at_once(machine: Rig) -> None:
    reserve(machine)
    for member in range(1, SLOTS + 1):
        end(machine, member)
    assert not is_granted(ask(machine, 11))
    machine.wait(UNUSED_READY_NS + 2 * SECOND)
    assert machine.state.executor.reservation is None
    for member in range(1, SLOTS + 1):
        run(machine, 20 + member)
    for number in range(6):
        ask_wide(machine, 130 + number)
        machine.wait(PATIENCE_NS)
    assert machine.state.executor.reservation is None
    machine.wait(2 * MINUTE)
    ask_wide(machine, 150)
    machine.wait(PATIENCE_NS)
    ask_wide(machine, 151)
    assert machine.state.executor.reservation is not None


def test_who_takes_a_claim_and_brings_nothing_gets_no_reservation_for_a_while(machine: Rig) -> None:
    reserve(machine)
    for member in range(1, SLOTS + 1):
        end(machine, member)
    assert is_granted(ask_wide(machine, 103))
    machine.wait(31 * SECOND)
    for member in range(1, SLOTS + 1):
        run(machine, 20 + member)
    ask_wide(machine, 104)
    machine.wait(PATIENCE_NS)
    ask_wide(machine, 105)
    assert machine.state.executor.reservation is None


def test_a_reservation_ends_if_its_shape_does_not_ask_again(machine: Rig) -> None:
    reserve(machine)
    machine.wait(29 * SECOND)
    assert machine.state.executor.reservation is not None
    machine.wait(2 * SECOND)
    assert machine.state.executor.reservation is None


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> int:
    """Shorten the hour in which something has to be added to what is reserved."""
    assert reservations.GATHERING_NS == HOUR
    monkeypatch.setattr(reservations, "GATHERING_NS", 2 * MINUTE)
    return 2 * MINUTE


def ask_for(rig: Rig, lasting_ns: int, *, first: int) -> None:
    """Let the wide task ask every ten seconds for some time."""
    for number in range(lasting_ns // (10 * SECOND)):
        ask_wide(rig, first + number)
        rig.wait(10 * SECOND)


def test_a_reservation_lasts_while_runs_end_however_long_it_takes_until_there_are_enough_slots(
    machine: Rig, patience: int
) -> None:
    reserve(machine)
    for member in range(1, SLOTS + 1):
        ask_for(machine, patience - 20 * SECOND, first=1_000 * member)
        end(machine, member)
        assert not is_granted(ask(machine, 10 + member))
    assert message_in(ask_wide(machine, 9_000), SchedAccept).places == 1


def test_a_reservation_ends_although_it_is_asked_for_if_no_run_has_ended_for_long(machine: Rig, patience: int) -> None:
    reserve(machine)
    ask_for(machine, patience - 20 * SECOND, first=1_000)
    assert machine.state.executor.reservation is not None
    ask_for(machine, 40 * SECOND, first=2_000)
    assert machine.state.executor.reservation is None


def test_a_slot_that_comes_and_goes_does_not_prolong_a_reservation(machine: Rig, patience: int) -> None:
    reserve(machine)
    end(machine, 1)
    for number in range(patience // (20 * SECOND)):
        ask_for(machine, 20 * SECOND, first=1_000 * (1 + number))
        machine.measure(slots=SLOTS - 1 + number % 2)
    ask_for(machine, 20 * SECOND, first=20_000)
    assert machine.state.executor.reservation is None


def test_a_shape_that_was_denied_earlier_takes_the_reservation_over(machine: Rig) -> None:
    older = tdv(cpus=2, user="older")
    ask(machine, 90, tdv=older)
    machine.wait(SECOND)
    reserve(machine)
    began_at = machine.now
    machine.wait(10 * SECOND)
    ask(machine, 91, tdv=older)
    reservation = machine.state.executor.reservation
    assert reservation is not None
    # It is the same neighbor's, whose reservation does not last longer for that.
    assert (reservation.slots, reservation.began_at) == (2, began_at)


def test_a_reservation_ends_with_the_link_of_its_neighbor(machine: Rig) -> None:
    reserve(machine)
    machine.handle(LinkDown(neighbor=PARENT))
    assert machine.state.executor.reservation is None
    assert machine.state.executor.starved == {}


def test_the_fifth_machine_of_a_search_reserves_nothing(machine: Rig) -> None:
    for number, asks_left in ((101, 60), (102, 60)):
        ask_wide(machine, number, asks_left=asks_left)
        machine.wait(PATIENCE_NS)
    assert machine.state.executor.reservation is None


def test_one_neighbor_is_remembered_with_so_many_shapes_only(machine: Rig) -> None:
    for number in range(100):
        ask(machine, 200 + number, tdv=tdv(cpus=2, user=f"u{number}"))
    assert len(machine.state.executor.starved) == 64
    machine.wait(8 * MINUTE)
    ask(machine, 400, tdv=WIDE)
    assert len(machine.state.executor.starved) == 1


def test_slots_are_reserved_for_a_local_task_until_it_is_cancelled(machine: Rig) -> None:
    machine.submit(tdv=WIDE)
    machine.wait(15 * SECOND)
    assert machine.state.executor.reservation is not None
    machine.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    machine.wait(SECOND)
    assert machine.state.executor.reservation is None


def test_a_local_task_that_needs_all_slots_starts_as_soon_as_those_have_ended_that_ran(machine: Rig) -> None:
    machine.submit(tdv=WIDE)
    machine.wait(15 * SECOND)
    for member in range(1, SLOTS + 1):
        end(machine, member)
        ask(machine, 10 + member)
    machine.wait(SECOND)
    assert [row.executed_on for row in machine.state.origin.tasks.values()] == [machine.state.system]


@pytest.mark.parametrize(("priority", "is_first"), [(9, True), (1, False)])
def test_what_the_policy_puts_before_the_wide_task_may_have_what_is_reserved(
    module: ModuleFactory, priority: int, *, is_first: bool
) -> None:
    rules = "accept from any { limit 99 tasks; } rank tasks by most $priority default 0;"
    rig = module(policy=parse_policy(rules, file="ranked.policy"))
    rig.greet(PARENT)
    rig.measure(slots=SLOTS)
    for member in range(1, SLOTS + 1):
        run(rig, member)
    ask_wide(rig, 101, tdv=tdv(cpus=SLOTS, priority=5))
    rig.wait(PATIENCE_NS)
    ask_wide(rig, 102, tdv=tdv(cpus=SLOTS, priority=5))
    assert rig.state.executor.reservation is not None
    end(rig, 1)
    assert is_granted(ask(rig, 11, tdv=tdv(priority=priority))) is is_first


@pytest.mark.parametrize(("cpus", "is_asked"), [(2, True), (1, False)])
def test_a_neighbor_without_a_free_slot_is_asked_for_several_since_it_may_reserve_them(
    rig: Rig, cpus: int, *, is_asked: bool
) -> None:
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system, view(free_slots=0))
    assert bool(sent(rig.submit(tdv=tdv(cpus=cpus)), SchedRequest)) is is_asked


def test_a_wide_task_that_found_places_elsewhere_through_this_module_reserves_nothing(machine: Rig) -> None:
    machine.greet(CHILD)
    machine.see(CHILD, view(free_slots=4))
    ask_wide(machine, 101)
    ((to, asked),) = sent(ask_wide(machine, 102, origin=SystemId("another")), SchedRequest)
    assert to == CHILD
    machine.hear(CHILD, accept(asked.id))
    assert [key[1] for key in machine.state.executor.starved] == [ORIGIN]
