"""Which recorded decisions would change if one policy took the place of another (MESSIAHS 2).

The recorded policy goes on deciding, so that the module hears and does what it did; whenever it is asked something, so
are the two policies, and their answers are compared. What a neighbor is told is compared whenever it was told anything.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import NoneType

from messiahs.config.policies import PolicySource, source_of
from messiahs.core.interface.actions import Action, Answer, SendControl, SendVector
from messiahs.core.interface.calendar import utc
from messiahs.core.interface.events import (
    AttemptsMeasured,
    AttemptStarted,
    ControlReceived,
    Measured,
    PolicyChanged,
    Submitted,
    TransferReceived,
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
from messiahs.trace.replay.sights import compare_sights
from messiahs.trace.replay.step import RecordedPorts, do_step

_NAMED_AT_MOST = 3
_LOOKED_AT = (NoneType, Measured, AttemptsMeasured, AttemptStarted)
"""After these the owner's rules are asked about what runs."""

Texts = tuple[PolicySource, PolicySource]
"""The old policy and the new one; the durations that they need not say are those of the recorded one."""


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
    """What a comparison came to (mutable while it goes on); `asked` counts questions."""

    segments: int = 0
    events: int = 0
    asked: int = 0
    notes: list[str] = field(default_factory=list)
    _changes: dict[tuple[SystemId, str, Asked], Change] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, in the order in which they first came."""
        return tuple(self._changes.values())

    def enter(self, module: SystemId, about: str, asked: Asked, /, at_ns: int) -> None:
        """Count a question, and note it if its answers differ."""
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
        # What runs goes on running when a new segment of a recording begins.
        place = (segment.head.system, segment.head.recording)
        _Stage(segment, texts, done, protecting.setdefault(place, ProtectingBoth())).play()
    return done


class _Stage:
    """One segment, while it is played (mutable)."""

    def __init__(self, segment: Segment, texts: Texts, done: Comparison, protecting: ProtectingBoth, /) -> None:
        self._segment, self._done, self._texts, self._protecting = segment, done, texts, protecting
        self._asked: list[Asked] = []
        timeouts = segment.head.policy.timeouts
        self._old, self._new = (replace(text, timeouts=timeouts).policy() for text in texts)
        self._time: CalendarTime | None = None

    def play(self) -> None:
        """Do every step again, and enter what was asked."""
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
            except Exception as error:  # noqa: BLE001 - whatever the core raises ends what can be compared
                self._note(f"record {number} fails with {error}: what follows is left out")
                return
            if actions != record.actions:
                self._note(f"record {number}: this release does something else; `messiahs trace replay` tells what")
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
        # One decision may take several questions that are alike.
        for asked in dict.fromkeys(self._asked):
            self._done.enter(system, about, asked, at_ns=at_ns)
        self._asked.clear()
        time = self._time or utc(Instant(at_ns))
        if isinstance(record.subject, _LOOKED_AT):
            for asked in self._protecting.look(module.state, self._old, self._new, now=record.at, time=time):
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
    """Name what a step was about: tasks, or searches."""
    named = list(dict.fromkeys(_names_in(record)))
    more = [f"and {len(named) - _NAMED_AT_MOST} more"] * (len(named) > _NAMED_AT_MOST)
    return ", ".join((*named[:_NAMED_AT_MOST], *more))


def _names_in(record: Record) -> Iterator[str]:
    match record.subject:
        case TransferReceived(message=message):
            yield from (str(task.attempt.task) for task in message.tasks)
        case Submitted():
            yield from (str(action.task) for action in record.actions if isinstance(action, Answer) and action.task)
        case ControlReceived(message=(SchedRequest() | TaskRequest()) as request):
            yield _search(request)
        case _:
            sent = (action.message for action in record.actions if isinstance(action, SendControl))
            yield from (_search(message) for message in sent if isinstance(message, SchedRequest | TaskRequest))


def _search(request: SchedRequest | TaskRequest) -> str:
    return f"search {request.search.hex()[:8]}"
