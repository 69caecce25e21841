"""A parent of many children: it sums up and tells them less often, in several turns, and always what is true."""

from itertools import pairwise

import pytest

from messiahs.core.interface.actions import Action, SendVector
from messiahs.core.interface.events import LinkDown, PolicyChanged, VectorReceived
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update.pacing import is_resting
from messiahs.core.vectors.vectors import Vector
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import GIB, PARENT, Rig, only, view

MANY = 200
CHILDREN = tuple(SystemId(f"child-{number:03}") for number in range(MANY))
DOWN, UP = VectorKind.FOR_CHILDREN, VectorKind.FOR_PARENTS


def circle_of(child: SystemId) -> tuple[SystemId, ...]:
    """Return the siblings that a child hears: ten children hear each other."""
    first = CHILDREN.index(child) // 10 * 10
    return tuple(other for other in CHILDREN[first : first + 10] if other != child)


def say(rig: Rig, child: SystemId, **said: int) -> None:
    number = CHILDREN.index(child)
    machine = view(**{"speed": 100 * number + 100, "avail_mem": (number + 1) * GIB, **said})
    message = StatusVector(kind=UP, vector=machine, period_ns=2 * SECOND, age_ns=0, hears=circle_of(child))
    rig.handle(VectorReceived(sender=child, message=message))


@pytest.fixture
def many(module: ModuleFactory) -> Rig:
    neighbors = (
        *(Neighbor(system=child, is_child=True, is_primary_child=True) for child in CHILDREN),
        Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),
    )
    rig = module(neighbors=neighbors)
    with rig.checked_at_the_end():
        rig.greet(PARENT, *CHILDREN)
        for child in CHILDREN:
            say(rig, child)
        rig.wait(20 * SECOND - rig.now % SECOND)
        for child in CHILDREN:
            say(rig, child)
        rig.wait(1_900 * MILLISECOND)
    return rig


def vectors_sent(actions: tuple[Action, ...], kind: VectorKind = DOWN) -> dict[SystemId, StatusVector]:
    return {each.to: each.message for each in only(actions, SendVector) if each.message.kind is kind}


def turns(rig: Rig, duration_ns: int) -> list[tuple[SendVector, ...]]:
    """Let time pass; give what was sent in each turn."""
    sent = []
    end = rig.now + duration_ns
    while (deadline := rig.module.next_deadline()) is not None and deadline <= end:
        sent.append(only(rig.wait(max(0, deadline - rig.now)), SendVector))
    return sent


def highest_memory(vector: Vector) -> int:
    return max(value.high for each in vector.classes for name, value in each.attributes if name == "avail_mem")  # type: ignore[union-attr]


def test_every_child_receives_a_vector_each_period_even_while_summing_is_paused(many: Rig) -> None:
    for _ in range(3):
        say(many, CHILDREN[0], avail_mem=(many.now // SECOND % 7 + 300) * GIB)
        assert vectors_sent(many.wait(2 * SECOND)).keys() == set(CHILDREN)


def test_machines_that_a_child_does_not_hear_are_sent_to_it_exactly_once(many: Rig) -> None:
    vectors = {child: message.vector for child, message in vectors_sent(many.wait(2 * SECOND)).items()}
    assert {vector.machines for vector in vectors.values()} == {MANY - 10}
    assert all(vectors[child] == vectors[circle_of(child)[0]] for child in CHILDREN)


def test_a_change_is_sent_to_the_parent_soon_and_to_children_once_that_is_a_small_part_of_the_time(many: Rig) -> None:
    times: list[int] = []
    for change in range(20):
        say(many, CHILDREN[change], avail_mem=(500 + 100 * change) * GIB)
        sent = many.wait(100 * MILLISECOND)
        assert highest_memory(vectors_sent(sent, UP)[PARENT].vector) >= highest_memory(
            view(avail_mem=(500 + 100 * change) * GIB)
        )
        times += [change] * bool(vectors_sent(sent))
    assert 1 <= len(times) <= 4
    say(many, CHILDREN[0], avail_mem=4_000 * GIB)
    last = vectors_sent(many.wait(4 * SECOND))
    assert highest_memory(last[CHILDREN[-1]].vector) == highest_memory(view(avail_mem=4_000 * GIB))


def test_a_repeated_vector_contains_its_age(many: Rig) -> None:
    many.wait(2 * SECOND)
    many.state.updates.down_rests_until = after(many.now, 60 * SECOND)  # as after much work
    ages = [vectors_sent(many.wait(2 * SECOND))[CHILDREN[0]].age_ns for _ in range(3)]
    assert [later - sooner for sooner, later in pairwise(ages)] == [2 * SECOND, 2 * SECOND]


def test_many_children_receive_vectors_in_several_batches(many: Rig) -> None:
    # Nobody hears a sibling any more, so each child is told something else.
    for child in CHILDREN:
        message = StatusVector(kind=UP, vector=view(speed=7), period_ns=2 * SECOND, age_ns=0)
        many.handle(VectorReceived(sender=child, message=message))
    sent = [{each.to for each in turn if each.message.kind is DOWN} for turn in turns(many, 5 * SECOND)]
    assert set().union(*sent) == set(CHILDREN)
    assert len([turn for turn in sent if 0 < len(turn) < MANY]) > 1


def test_a_new_policy_applies_to_repeated_vectors(many: Rig) -> None:
    many.state.updates.down_rests_until = after(many.now, 60 * SECOND)  # as after much work
    hiding = parse_policy("reveal to children { only $arch; }", file="x.policy")
    many.handle(PolicyChanged(policy=hiding))
    many.hear(CHILDREN[3], SystemStatusQuery())
    many.wait(2 * SECOND)
    for child in CHILDREN:
        names = {name for each in many.state.updates.sent[child, DOWN].vector.classes for name, _ in each.attributes}
        assert names == {"arch"}


def test_a_child_that_comes_while_summing_up_rests_hears_of_the_own_machine_and_later_of_all(many: Rig) -> None:
    many.measure()
    many.state.updates.down_rests_until = after(many.now, 1 * SECOND)  # as after much work
    many.state.updates.asked_rests_until = after(many.now, 1 * SECOND)
    many.handle(LinkDown(neighbor=CHILDREN[0]))
    many.wait(100 * MILLISECOND)
    at_first = vectors_sent(many.greet(CHILDREN[0]))[CHILDREN[0]].vector
    assert at_first.machines == 1
    later = vectors_sent(many.wait(3 * SECOND))[CHILDREN[0]].vector
    assert later.machines > MANY - 10


def test_a_child_that_asks_again_and_again_is_answered_and_keeps_no_news_from_the_others(many: Rig) -> None:
    for number in range(300):
        say(many, CHILDREN[1], speed=number * 50)
        assert vectors_sent(many.hear(CHILDREN[0], SystemStatusQuery())).keys() == {CHILDREN[0]}
    assert not is_resting(many.state.updates.down_rests_until, after(many.now, SECOND))
    say(many, CHILDREN[1], avail_mem=4_000 * GIB)
    last = vectors_sent(many.wait(3 * SECOND))
    assert highest_memory(last[CHILDREN[-1]].vector) == highest_memory(view(avail_mem=4_000 * GIB))


def test_a_parent_that_asks_again_and_again_is_answered_without_summing_up_each_time(many: Rig) -> None:
    machines = []
    for number in range(50):
        many.handle(LinkDown(neighbor=CHILDREN[number]))
        machines.append(vectors_sent(many.hear(PARENT, SystemStatusQuery()), UP)[PARENT].vector.machines)
    assert len(set(machines)) < 5
    assert vectors_sent(many.wait(SECOND), UP)[PARENT].vector.machines == MANY - 50


def test_nothing_remains_to_be_sent_once_every_neighbor_has_it(many: Rig) -> None:
    many.wait(20 * SECOND)
    assert not many.state.updates.round.unsent
    assert not many.state.timers.is_set(TimerKind.SUM, many.state.system)


def test_vectors_for_many_children_do_not_depend_on_cached_sums(module: ModuleFactory) -> None:
    said = []
    for keeps in (True, False):
        rig = module(
            neighbors=tuple(Neighbor(system=child, is_child=True, is_primary_child=True) for child in CHILDREN)
        )
        rig.greet(*CHILDREN)
        for number, child in enumerate(CHILDREN):
            say(rig, child, speed=number)
            said.append((keeps, rig.wait(20 * MILLISECOND)))
            if not keeps:
                rig.state.updates.sums = None
        said.append((keeps, rig.wait(4 * SECOND)))
    assert [each for keeps, each in said if keeps] == [each for keeps, each in said if not keeps]


def test_a_child_that_says_every_time_that_it_hears_others_takes_no_more_memory(module: ModuleFactory) -> None:
    children = CHILDREN[:10]
    rig = module(neighbors=tuple(Neighbor(system=each, is_child=True, is_primary_child=True) for each in children))
    rig.greet(*children)
    for number in range(200):
        hears = tuple(each for place, each in enumerate(children[1:]) if number >> place & 1)
        message = StatusVector(kind=UP, vector=view(), period_ns=2 * SECOND, age_ns=0, hears=hears)
        rig.handle(VectorReceived(sender=children[0], message=message))
        rig.hear(children[0], SystemStatusQuery())
        rig.wait(10 * MILLISECOND)
    sums = rig.state.updates.sums
    assert sums is not None
    assert len(sums.revealed_down) <= len(children) + 1


def test_a_round_that_takes_longer_than_a_period_ends_and_the_next_one_tells_what_is_new(many: Rig) -> None:
    def say_alone(number: int, memory: int) -> None:
        machine = view(speed=100 * number + 100, avail_mem=memory)
        message = StatusVector(kind=UP, vector=machine, period_ns=1_000 * SECOND, age_ns=0)
        many.handle(VectorReceived(sender=CHILDREN[number], message=message))

    def take_slow_turns(duration_ns: int) -> dict[SystemId, StatusVector]:
        """Let each turn take so long that a round of all children takes longer than a period."""
        last: dict[SystemId, StatusVector] = {}
        end = after(many.now, duration_ns)
        while (deadline := many.module.next_deadline()) is not None and deadline < end:
            many.now = max(deadline, after(many.now, 300 * MILLISECOND))
            last |= vectors_sent(many.wait(0))
        return last

    # Nobody hears a sibling any more, so each child is told something else.
    for number in range(MANY):
        say_alone(number, (number + 1) * GIB)
    many.wait(20 * SECOND)
    say_alone(0, 4_000 * GIB)
    take_slow_turns(10 * SECOND)
    say_alone(0, 9_000 * GIB)
    last = take_slow_turns(40 * SECOND)
    assert {highest_memory(last[child].vector) for child in CHILDREN[1:]} == {
        highest_memory(view(avail_mem=9_000 * GIB))
    }
