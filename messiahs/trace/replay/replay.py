"""Running a trace through the core of this build, and comparing every action (MESSIAHS 6.1: it is deterministic)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.module import SchedulingModule
from messiahs.core.state.module import ModuleState
from messiahs.trace.format.records import Drawn, Record
from messiahs.trace.format.segments import Segment, state_bytes
from messiahs.trace.replay.step import RecordedPorts, do_step

_NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference of this build: after the `subject` of a record (numbered from 1; 0: at the start)."""

    segment: str
    record: int
    subject: str
    expected: str
    found: str


@dataclass(slots=True)
class Replay:
    """The result of a replay (mutable while in progress); `events` counts every step, `actions` those recorded."""

    segments: int = 0
    events: int = 0
    actions: int = 0
    differences: list[Difference] = field(default_factory=list)


def replay(segments: Iterable[Segment], *, policy: Policy | None = None) -> Replay:
    """Replay segments, those of one module in order; `policy` replaces the recorded one.

    The state at the start of a segment is compared with the state after the previous one. Raises `TraceError` for a
    segment that cannot be read, and `PolicyError` if this build does not accept the recorded policy.
    """
    done = Replay()
    ends: dict[tuple[SystemId, int, int], bytes] = {}
    for segment in segments:
        done.segments += 1
        head = segment.head
        end = ends.pop((head.system, head.recording, head.number), segment.state)
        if end != segment.state:
            found = "the segment before it led to another one"
            done.differences.append(_difference(segment, 0, subject="the state", expected="as recorded", found=found))
        state = _replay_segment(segment, done, policy if policy is not None else head.policy.policy())
        if state is not None:
            ends[head.system, head.recording, head.number + 1] = state_bytes(state)
    return done


def _replay_segment(segment: Segment, done: Replay, policy: Policy) -> ModuleState | None:
    """Return the state at the end; None if an error or a lost record makes it incomparable."""
    ports = RecordedPorts()
    state = segment.state_with(policy=policy, randomness=ports, calendar=ports.calendar)
    module = SchedulingModule(state)
    for number, record in enumerate(segment.records(), start=1):
        done.events += 1
        done.actions += len(record.actions)
        ports.left = iter(record.drawn)
        try:
            actions, raised = do_step(module, record.subject, record.at), ""
        except Exception as error:  # noqa: BLE001 - any exception of the core is a result of the replay
            actions, raised = (), f"{type(error).__name__}: {error}"
        done.differences.extend(
            _difference(segment, number, subject=_subject(record), expected=expected, found=found)
            for expected, found in _unequal(record, actions, raised=raised, left=ports.left)
        )
        if raised:
            return None
    return None if segment.note else state


def _unequal(
    record: Record, actions: tuple[Action, ...], /, *, raised: str, left: Iterator[Drawn]
) -> Iterator[tuple[str, str]]:
    """Yield each expected value with the one found in its place."""
    if raised != record.raised:
        yield record.raised or "no error", raised or "no error"
        return
    if actions != record.actions:
        for expected, found in zip_longest(record.actions, actions):
            if expected != found:
                yield _text_of(expected), _text_of(found)
    for drawn in left:
        yield f"draws {drawn}", "does not draw"


def _text_of(action: Action | None) -> str:
    return _NOTHING if action is None else repr(action)


def _subject(record: Record) -> str:
    return "a timeout" if record.subject is None else repr(record.subject)


def _difference(segment: Segment, record: int, /, *, subject: str, expected: str, found: str) -> Difference:
    return Difference(segment=segment.name, record=record, subject=subject, expected=expected, found=found)
