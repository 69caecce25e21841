"""Values of the core as bytes and back."""

from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial

import pytest

from messiahs.core.interface.events import VectorReceived
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import ClientKey
from messiahs.core.module import SchedulingModule
from messiahs.core.vectors.vectors import VARIOUS, Interval, MachineClass, Vector
from messiahs.trace.format.kinds import kinds_in
from messiahs.trace.format.records import contents
from messiahs.trace.format.segments import state_bytes
from messiahs.trace.format.values import decode, encode
from tests.unit.core.rig import CHILD, Rig, make_module, tdv


@dataclass(slots=True)
class Thing:
    """Something that is in several places (mutable)."""

    number: int
    derived: list[int] = field(default_factory=list, compare=False)


@dataclass(slots=True)
class Things:
    """Every container that a state may have."""

    first: Thing
    by_number: dict[int, Thing]
    line: deque[tuple[int, ...]]
    counts: Counter[tuple[str, int | None]]
    listed: list[Thing | None]


def _copy(things: Things) -> Things:
    copy = decode(encode(things, kinds_in(Things)), kinds_in(Things), {})
    assert isinstance(copy, Things)
    return copy


def _things() -> Things:
    thing = Thing(number=1, derived=[1])
    return Things(
        first=thing,
        by_number={2: Thing(number=2), 1: thing},
        line=deque([(1, 2), ()]),
        counts=Counter({("b", None): 2, ("a", 1): 3}),
        listed=[None, thing],
    )


def test_containers_keep_type_content_and_order() -> None:
    copy = _copy(_things())
    assert copy == _things()
    assert list(copy.by_number) == [2, 1]
    assert (type(copy.line), type(copy.counts)) == (deque, Counter)
    assert list(copy.counts) == [("b", None), ("a", 1)]


def test_one_object_in_three_places_stays_one() -> None:
    copy = _copy(_things())
    assert copy.first is copy.by_number[1] is copy.listed[1]
    assert copy.first is not copy.by_number[2]


def test_derived_values_are_computed_again() -> None:
    copy = _copy(_things())
    assert copy.first.derived == []
    assert copy.first.derived is not copy.by_number[2].derived


def test_of_values_that_never_change_nobody_can_say_whether_they_are_one_object() -> None:
    one, same = (StatusVector(kind=VectorKind.FOR_PARENTS, vector=Vector(), period_ns=1, age_ns=0) for _ in range(2))
    events = [(VectorReceived(sender=CHILD, message=one), VectorReceived(sender=CHILD, message=x)) for x in (one, same)]
    canonical = {encode(pair, contents(), is_canonical=True) for pair in events}
    assert len(canonical) == 1
    short, long = (encode(pair, contents()) for pair in events)
    assert len(short) < len(long)
    assert {decode(data, contents(), {}) for data in (*canonical, short, long)} == {events[0]}


def test_the_word_various_and_strings_that_differ_are_two_things() -> None:
    attributes = (("a", Interval(1, 2)), ("b", "various"), ("c", VARIOUS))
    vector = Vector((MachineClass(count=1, attributes=attributes),))
    message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=vector, period_ns=1, age_ns=0)
    event = VectorReceived(sender=CHILD, message=message)
    copy = decode(encode(event, contents()), contents(), {})
    assert copy == event
    assert [type(value) for _, value in copy.message.vector.classes[0].attributes] == [Interval, str, type(VARIOUS)]


def test_a_type_that_is_not_expected_is_named() -> None:
    with pytest.raises(TypeError, match="set"):
        encode({"names": {1}}, kinds_in(Things))


def test_timeouts_fire_in_the_same_order_after_reading() -> None:
    rig = Rig(module=make_module())
    rig.resume()
    rig.greet(CHILD)
    rig.see(CHILD)
    rig.submit(key=ClientKey("k"), tdv=tdv(mem=1 << 60), requirement="$speed > 1")
    state = rig.state
    ports = {"policy": state.policy, "parse": state.parse, "randomness": state.randomness, "calendar": state.calendar}
    copy = SchedulingModule(decode(state_bytes(state), contents(), ports))
    assert copy.state.timers.next_deadline() == state.timers.next_deadline()
    far = max(deadline for _, _, deadline in state.timers.waiting())
    due = list(iter(partial(state.timers.take_due, far), None))
    assert due
    assert list(iter(partial(copy.state.timers.take_due, far), None)) == due
