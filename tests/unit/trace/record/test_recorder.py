"""Recording a module while it runs, and replaying it."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from messiahs.core.interface.actions import Action, TaskEnded
from messiahs.core.interface.events import ControlReceived, LinkUp, Measured
from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Accepted, AcceptQuery, CalendarTime, Randomness, Refused
from messiahs.core.model.instants import HOUR, Instant
from messiahs.trace.format.records import RandomBits, Record, contents
from messiahs.trace.format.segments import Segment
from messiahs.trace.format.values import encode
from messiahs.trace.replay.replay import replay
from tests.unit.core.rig import CHILD, PARENT, SIBLING, TASK, Rig, hello, make_module, sdv
from tests.unit.core.scripted_policy import ScriptedPolicy
from tests.unit.trace.taping import Taping, submitted, taping


def _records(tape: Taping) -> list[Record]:
    return [record for segment in tape.files.segments() for record in segment.records()]


def _busy(tape: Taping) -> tuple[Action, ...]:
    """Let a module with a machine greet a neighbor, run tasks of its own, and advertise."""
    actions = [*tape.start(), *tape.handle(ControlReceived(sender=CHILD, message=hello(CHILD)))]
    actions += tape.handle(Measured(sdv=sdv()))
    actions += tape.handle(submitted())
    tape.now = Instant(tape.now + HOUR)
    return (*actions, *tape.module.expire(tape.now))


def _recorded(segment_bytes: int = 1 << 20) -> Taping:
    tape = taping(Rig(module=make_module()))
    tape.record(segment_bytes=segment_bytes)
    _busy(tape)
    tape.module.end_recording()
    return tape


def test_a_module_does_the_same_whether_it_is_recorded_or_not() -> None:
    recorded, other = taping(Rig(module=make_module())), taping(Rig(module=make_module()))
    recorded.record()
    assert _busy(recorded) == _busy(other)
    assert other.files.files == []


def test_every_step_is_recorded_with_what_it_drew_and_gave() -> None:
    tape = _recorded()
    records = _records(tape)
    assert [type(record.subject).__name__ for record in records] == [
        "Remains", "LinkUp", "ControlReceived", "Measured", "Submitted", "NoneType",
    ]  # fmt: skip
    drawn = [kind for record in records for kind in map(type, record.drawn)]
    assert {RandomBits, CalendarTime} == set(drawn)
    assert replay(tape.files.segments(), policy=ScriptedPolicy()).differences == []


def test_when_the_recording_ends_the_module_has_its_ports_back() -> None:
    rig = Rig(module=make_module())
    ports = (rig.state.randomness, rig.state.calendar)
    tape = taping(rig)
    tape.record()
    assert rig.state.randomness is not ports[0]
    tape.record()
    tape.module.end_recording()
    assert (rig.state.randomness, rig.state.calendar) == ports
    assert (tape.module.is_recorded, tape.files.is_closed) == (False, True)


def test_a_timer_that_is_not_due_leaves_no_record() -> None:
    tape = taping(Rig(module=make_module()))
    tape.record()
    tape.start()
    tape.expire()
    count = len(_records(tape))
    assert tape.module.expire(tape.now) == ()
    assert len(_records(tape)) == count


def test_a_segment_begins_with_the_state_to_which_the_one_before_it_led() -> None:
    tape = _recorded(segment_bytes=1)
    segments = tape.files.segments()
    assert [segment.head.number for segment in segments] == [0, 1]
    done = replay(segments, policy=ScriptedPolicy())
    assert (done.segments, done.events, done.differences) == (2, 6, [])
    first, second = segments
    assert replay([second], policy=ScriptedPolicy()).differences == []
    wrong = replace(second, state=first.state)
    differences = replay([first, wrong], policy=ScriptedPolicy()).differences
    assert (differences[0].record, differences[0].found) == (0, "the segment before it led to another one")


def test_a_disk_without_room_ends_the_recording_and_nothing_else() -> None:
    tape, other = taping(Rig(module=make_module())), taping(Rig(module=make_module()))
    tape.files.room = 500
    tape.record()
    assert _busy(tape) == _busy(other)
    assert (tape.module.is_recorded, tape.files.is_closed) == (False, True)
    assert tape.lost == ["[Errno 28] No space left on device"]
    assert _records(tape)


def test_a_state_that_cannot_be_written_ends_the_recording_and_nothing_else() -> None:
    tape = taping(Rig(module=make_module()))
    tape.record(segment_bytes=1)
    tape.start()
    tape.module.state.updates.links = {CHILD: {1}}  # type: ignore[dict-item]
    for neighbor in (SIBLING, PARENT) * 20:
        tape.handle(LinkUp(neighbor=neighbor))
    assert tape.lost == ["a trace cannot hold set"]


@dataclass(slots=True)
class BrokenPolicy:
    """The scripted policy, with a bug in the midst of a decision (mutable)."""

    scripted: ScriptedPolicy = field(default_factory=ScriptedPolicy)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the other has
        return getattr(self.scripted, name)

    @property
    def acceptance(self) -> "BrokenAcceptance":
        """Fail."""
        return BrokenAcceptance()


@dataclass(frozen=True, slots=True)
class BrokenAcceptance:
    """Fails."""

    text: str = "broken"
    initial: PartState = ()

    def decide(
        self, query: AcceptQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Accepted | Refused, PartState]:
        """Fail."""
        del state, randomness
        raise ZeroDivisionError(f"for {query.asker.system}")

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Say nothing."""
        del query
        return ""

    @property
    def reads_usage(self) -> bool:
        """Return False."""
        return False


def test_the_step_that_shows_a_bug_is_on_disk_before_anybody_hears_of_it() -> None:
    tape = taping(Rig(module=make_module(policy=BrokenPolicy())))
    tape.record()
    tape.start()
    with pytest.raises(ZeroDivisionError):
        tape.handle(submitted())
    assert tape.files.is_closed
    *_, last = _records(tape)
    assert (last.subject, last.raised) == (submitted(), "ZeroDivisionError: for me")
    assert replay(tape.files.segments(), policy=BrokenPolicy()).differences == []
    (difference,) = replay(tape.files.segments(), policy=ScriptedPolicy()).differences
    assert difference.expected == "ZeroDivisionError: for me"
    assert "the calendar is read" in difference.found


def test_another_policy_does_something_else() -> None:
    refusing = ScriptedPolicy(verdict=Refused(code=DenyCode.REFUSED_BY_POLICY))
    done = replay(_recorded().files.segments(), policy=refusing)
    assert done.differences[0].subject.startswith("Submitted(")


def _with_last(tape: Taping, **changes: object) -> list[Segment]:
    """Return the recorded segment, with a last record that was changed."""
    (segment,) = tape.files.segments()
    record = replace(list(segment.records())[-1], **changes)  # type: ignore[arg-type]
    return [replace(segment, frames=(*segment.frames[:-1], encode(record, contents())))]


@pytest.mark.parametrize(
    ("changes", "expected", "found"),
    [
        ({"actions": ()}, "nothing", "SendVector"),
        ({"actions": (TaskEnded(task=TASK),)}, "TaskEnded", "SendVector"),
        ({"drawn": (RandomBits(count=3, number=b"1"),) * 9}, "no error", "are drawn in place of RandomBits|is read in"),
        ({"raised": "ValueError: "}, "ValueError: ", "no error"),
    ],
)
def test_whatever_is_not_as_it_was_is_a_difference(changes: dict[str, object], expected: str, found: str) -> None:
    tape = _recorded()
    assert replay(_with_last(tape), policy=ScriptedPolicy()).differences == []
    differences = replay(_with_last(tape, **changes), policy=ScriptedPolicy()).differences
    assert {difference.record for difference in differences} == {6}
    assert re.search(expected, differences[0].expected)
    assert re.search(found, differences[0].found)


def test_a_draw_that_is_left_over_is_a_difference() -> None:
    tape = _recorded()
    last = _records(tape)[-1]
    segments = _with_last(tape, drawn=(*last.drawn, RandomBits(count=8, number=b"1")))
    (difference,) = replay(segments, policy=ScriptedPolicy()).differences
    assert difference.found == "does not draw"
