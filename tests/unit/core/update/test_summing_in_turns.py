"""A sum over very many children takes several turns: others come in between, and what leaves is of one instant."""

import pytest

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.events import PolicyChanged, VectorReceived
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.module import SchedulingModule
from messiahs.core.vectors.compaction import compact
from messiahs.core.vectors.vectors import Vector, coalesce
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.trace.format.records import contents
from messiahs.trace.format.segments import state_bytes
from messiahs.trace.format.values import decode
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import GIB, PARENT, Rig, only, view

CHILDREN = tuple(SystemId(f"child-{number:03}") for number in range(600))
UP, DOWN = VectorKind.FOR_PARENTS, VectorKind.FOR_CHILDREN


def say(rig: Rig, number: int, **said: int) -> None:
    machine = view(**{"speed": 1 << number % 25, "avail_mem": GIB << number // 25, **said})
    message = StatusVector(kind=UP, vector=machine, period_ns=2 * SECOND, age_ns=0)
    rig.handle(VectorReceived(sender=CHILDREN[number], message=message))


@pytest.fixture
def crowded(module: ModuleFactory) -> Rig:
    """Make a module that has heard very many children, no two of which are alike, and has summed them up."""
    children = (Neighbor(system=child, is_child=True, is_primary_child=True) for child in CHILDREN)
    rig = module(neighbors=(*children, Neighbor(system=PARENT, is_parent=True, is_primary_parent=True)))
    with rig.checked_at_the_end():
        rig.greet(PARENT, *CHILDREN)
        for number in range(len(CHILDREN)):
            say(rig, number)
        rig.wait(20 * SECOND - rig.now % SECOND)
        for number in range(len(CHILDREN)):
            say(rig, number)
        rig.wait(500 * MILLISECOND)
    assert rig.state.updates.summing is None
    return rig


def begin(rig: Rig) -> None:
    """Let a child say something new, and the module begin to sum up."""
    say(rig, 7, avail_mem=1)
    rig.state.updates.up_rests_until = None
    turn(rig)
    assert rig.state.updates.summing is not None


def turn(rig: Rig) -> tuple[StatusVector, ...]:
    """Wait for the next turn; give what the parent is sent in it."""
    deadline = rig.module.next_deadline()
    assert deadline is not None
    return to_parent(rig.wait(max(0, deadline - rig.now)))


def to_parent(actions: tuple[object, ...]) -> tuple[StatusVector, ...]:
    return tuple(each.message for each in only(actions, SendVector) if each.to == PARENT)  # type: ignore[arg-type]


def finish(rig: Rig) -> tuple[StatusVector, ...]:
    sent: list[StatusVector] = []
    while rig.state.updates.summing is not None:
        sent.extend(turn(rig))
    return tuple(sent)


def all_that_is_said(rig: Rig) -> Vector:
    heard = [each.message.vector for (_, kind), each in rig.state.updates.views.items() if kind is UP]
    keys = rig.state.policy.keys
    return compact(coalesce(heard, keys=keys), keys=keys)


def test_what_comes_between_two_turns_is_in_the_next_sum_and_not_in_this_one(crowded: Rig) -> None:
    begin(crowded)
    then = all_that_is_said(crowded)
    say(crowded, 9, avail_mem=2)
    assert [message.vector for message in finish(crowded)] == [then]
    last = to_parent(crowded.wait(5 * SECOND))[-1]
    assert last.vector == all_that_is_said(crowded) != then


def test_the_age_is_that_of_the_instant_at_which_it_began(crowded: Rig) -> None:
    oldest = min(each.received_at for each in crowded.state.updates.views.values())
    begin(crowded)
    for number in range(len(CHILDREN)):
        say(crowded, number)
    (message,) = finish(crowded)
    assert message.age_ns == crowded.now - oldest


def test_a_period_does_not_wait_for_the_sum(crowded: Rig) -> None:
    known = crowded.state.updates.up
    crowded.wait(2 * SECOND - 5 * MILLISECOND - crowded.now % (2 * SECOND))
    # The period is over before the change has waited long enough.
    say(crowded, 7, avail_mem=1)
    (message,) = turn(crowded)
    assert crowded.state.updates.summing is not None
    assert message.vector == known


def test_what_was_summed_up_under_an_old_policy_is_not_sent_any_more(crowded: Rig) -> None:
    begin(crowded)
    hiding = parse_policy("reveal to parent { only $arch; }", file="x.policy")
    crowded.handle(PolicyChanged(policy=hiding))
    assert to_parent(crowded.hear(PARENT, SystemStatusQuery())) == ()
    (message,) = finish(crowded)
    assert {name for each in message.vector.classes for name, _ in each.attributes} == {"arch"}


def test_a_query_meanwhile_is_answered_with_the_last_sum(crowded: Rig) -> None:
    known = crowded.state.updates.up
    begin(crowded)
    (message,) = to_parent(crowded.hear(PARENT, SystemStatusQuery()))
    assert message.vector == known
    assert message.age_ns > 0


def test_a_state_that_is_written_and_read_meanwhile_continues_as_before(crowded: Rig) -> None:
    begin(crowded)
    state = crowded.state
    ports = {
        "policy": state.policy,
        "parse": predicate_parser,
        "randomness": state.randomness,
        "calendar": state.calendar,
    }
    other = Rig(module=SchedulingModule(decode(state_bytes(state), contents(), ports)), now=crowded.now)
    end = after(crowded.now, 300 * MILLISECOND)
    while (deadline := crowded.module.next_deadline()) is not None and deadline < end:
        assert other.wait(deadline - other.now) == crowded.wait(deadline - crowded.now)
    assert state_bytes(other.state) == state_bytes(crowded.state)
