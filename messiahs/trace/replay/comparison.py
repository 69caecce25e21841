"""The recorded decisions that would change if one policy replaced another (MESSIAHS 2).

The recorded policy keeps deciding, so that the module receives and does what was recorded. Whenever it is asked
something, the two policies are asked too, and their answers are compared. The vectors for a neighbor are compared
whenever one was sent.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import NoneType

from messiahs.config.policies import PolicySource, source_of
from messiahs.core.interface.actions import Action, Answer, SendControl, SendVector
from messiahs.core.interface.attempts import AttemptsMeasured, AttemptStarted
from messiahs.core.interface.calendar import utc
from messiahs.core.interface.events import (
    ControlReceived,
    Measured,
    PolicyChanged,
    Submitted,
    TransferReceived,
    WorkflowSubmitted,
)
from messiahs.core.interface.messages import SchedRequest, TaskRequest
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.module import SchedulingModule
from messiahs.trace.format.records import Record
from messiahs.trace.format.segments import Segment
from messiahs.trace.replay.both_policies import Asked, AskingBoth
from messiahs.trace.replay.both_rules import ProtectingBoth
from messiahs.trace.replay.disclosure_diff import compare_sights
from messiahs.trace.replay.step import RecordedPorts, do_step

_NAME_LIMIT = 3
_EVALUATED_AFTER = (NoneType, Measured, AttemptsMeasured, AttemptStarted)
"""Events after which the owner's rules are evaluated for running attempts."""

Texts = tuple[PolicySource, PolicySource]
"""The old policy and the new one; timeouts that they do not set are those of the recorded one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A question to which two policies give different answers, about a task or a search; asked `count` times.

    Instants are nanoseconds since 1970.
    """

    module: SystemId
    about: str
    question: str
    old: str
    new: str
    count: int
    first_at_ns: int
    last_at_ns: int

    @property
    def kind(self) -> str:
        """The first word of the question."""
        return self.question.split(" ", 1)[0]


@dataclass(slots=True)
class Comparison:
    """The result of a comparison (mutable while in progress); `asked` counts questions."""

    segments: int = 0
    events: int = 0
    asked: int = 0
    notes: list[str] = field(default_factory=list)
    _changes: dict[tuple[SystemId, str, Asked], Change] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, in the order of first occurrence."""
        return tuple(self._changes.values())

    def enter(self, module: SystemId, about: str, asked: Asked, /, at_ns: int) -> None:
        """Count a question, and record it if its answers differ."""
        self.asked += 1
        if asked.old == asked.new:
            return
        key = (module, about, asked)
        known = self._changes.get(key)
        if known is None:
            self._changes[key] = Change(
                module=module,
                about=about,
                question=asked.question,
                old=asked.old,
                new=asked.new,
                count=1,
                first_at_ns=at_ns,
                last_at_ns=at_ns,
            )
        else:
            self._changes[key] = replace(known, count=known.count + 1, last_at_ns=at_ns)


def compare(segments: Iterable[Segment], texts: Texts) -> Comparison:
    """Replay segments and ask both policies; raises TraceError as `replay` does, PolicyError for the policies."""
    done = Comparison()
    protecting: dict[tuple[SystemId, int], ProtectingBoth] = {}
    for segment in segments:
        done.segments += 1
        # Attempts continue across the segments of a recording.
        place = (segment.head.system, segment.head.recording)
        _Stage(segment, texts, done, protecting.setdefault(place, ProtectingBoth())).play()
    return done


class _Stage:
    """One segment during its replay (mutable)."""

    def __init__(self, segment: Segment, texts: Texts, done: Comparison, protecting: ProtectingBoth, /) -> None:
        self._segment, self._done, self._texts, self._protecting = segment, done, texts, protecting
        self._asked: list[Asked] = []
        timeouts = segment.head.policy.timeouts
        self._old, self._new = (replace(text, timeouts=timeouts).policy() for text in texts)
        self._time: CalendarTime | None = None

    def play(self) -> None:
        """Repeat every step, and record the questions."""
        segment, ports = self._segment, RecordedPorts()
        self._note_other(segment.head.policy)
        policy = self._between(segment.head.policy.policy())
        state = segment.state_with(policy=policy, randomness=ports, calendar=ports.calendar)
        module = SchedulingModule(state)
        for number, record in enumerate(segment.records(), start=1):
            self._done.events += 1
            ports.left = iter(record.drawn)
            self._time = next((each for each in record.drawn if isinstance(each, CalendarTime)), self._time)
            try:
                actions = self._step(module, record)
            except Exception as error:  # noqa: BLE001 - any exception of the core ends the comparable part
                self._note(f"record {number} fails with {error}: later records are left out")
                return
            if actions != record.actions:
                self._note(f"record {number}: the actions of this release differ; see `messiahs trace replay`")
                return
            self._enter(module, record)

    def _step(self, module: SchedulingModule, record: Record) -> tuple[Action, ...]:
        subject = record.subject
        if isinstance(subject, PolicyChanged):
            self._note_other(source_of(subject.policy))
            subject = PolicyChanged(policy=self._between(subject.policy))
        return do_step(module, subject, record.at)

    def _between(self, recorded: Policy) -> AskingBoth:
        return AskingBoth(recorded, self._old, self._new, self._asked.append)

    def _enter(self, module: SchedulingModule, record: Record) -> None:
        about = _about(record)
        at_ns = record.at + self._segment.head.wall_offset_ns
        system = module.state.system
        # One decision may ask several equal questions.
        for asked in dict.fromkeys(self._asked):
            self._done.enter(system, about, asked, at_ns=at_ns)
        self._asked.clear()
        time = self._time or utc(Instant(at_ns))
        if isinstance(record.subject, _EVALUATED_AFTER):
            for asked in self._protecting.evaluate(module.state, self._old, self._new, now=record.at, time=time):
                self._done.enter(system, "", asked, at_ns=at_ns)
        for name in dict.fromkeys(action.to for action in record.actions if isinstance(action, SendVector)):
            neighbor = module.state.neighbors[name]
            asked = compare_sights(module.state, neighbor, self._old, self._new, now=record.at, time=time)
            self._done.enter(system, "", asked, at_ns=at_ns)

    def _note_other(self, recorded: PolicySource) -> None:
        if recorded.sha256 != self._texts[0].sha256:
            name = recorded.file or "no policy file"
            self._note(f"recorded under {name}, SHA-256 {recorded.sha256 or '-'}, and not under the old policy")

    def _note(self, text: str) -> None:
        self._done.notes.append(f"{self._segment.name}: {text}")


def _about(record: Record) -> str:
    """Return the tasks or searches of a step."""
    named = list(dict.fromkeys(_names_in(record)))
    more = [f"and {len(named) - _NAME_LIMIT} more"] * (len(named) > _NAME_LIMIT)
    return ", ".join((*named[:_NAME_LIMIT], *more))


def _names_in(record: Record) -> Iterator[str]:
    match record.subject:
        case TransferReceived(message=message):
            yield from (str(task.attempt.task) for task in message.tasks)
        case Submitted() | WorkflowSubmitted():
            yield from (str(action.task) for action in record.actions if isinstance(action, Answer) and action.task)
        case ControlReceived(message=(SchedRequest() | TaskRequest()) as request):
            yield _search(request)
        case _:
            sent = (action.message for action in record.actions if isinstance(action, SendControl))
            yield from (_search(message) for message in sent if isinstance(message, SchedRequest | TaskRequest))


def _search(request: SchedRequest | TaskRequest) -> str:
    return f"search {request.search.hex()[:8]}"
