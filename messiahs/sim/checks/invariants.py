"""Invariants at every moment of a simulation under any fault, checked by the events on the simulated machines.

- No two attempts of one task run at once, and none begins twice or after another was bound in its place.
- A task that has exited by itself does not run again, unless the machine or the lease was lost, or a retry applies.
- No machine runs more than its slots, memory and disk allow; suspended attempts take no slots.
- A task reaches one final state, once, which is stored before it is reported.
- No module runs or passes on tasks that only systems without a part in their claim have sent.
- Nothing that a border hides is in a message that leaves its site.
- The core's invariants hold between any two events.
"""

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from messiahs.core.interface.actions import (
    Action,
    Effect,
    Forget,
    Report,
    ReportCode,
    SendTasks,
    StartAttempt,
    Store,
    TaskEnded,
)
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ControlReceived, Event, TransferReceived, VectorReceived
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.policies import Need
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.rows import GrantedClaimRow, HeldClaimRow, PassedClaimRow, RowKind, SubmissionRow, TaskRow
from messiahs.core.invariants import violations
from messiahs.core.model.counted import Counted
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId
from messiahs.core.model.instants import SECOND
from messiahs.core.origin.array_members import with_untried
from messiahs.core.origin.retry import has_failed
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.matching import need_of
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.sim.checks.hidden_ids import HiddenIds
from messiahs.sim.checks.order import StartOrder
from messiahs.sim.checks.secrecy import NO_SECRECY, Secrecy
from messiahs.sim.world.agenda import Agenda, DriftingClock
from messiahs.trace.show.lines import action_text, event_text

_REMEMBERED = 20_000
_TASKS_PER_CHECK = 64
"""A module with more tasks than this is checked less often, because a full check takes time."""
_NO_RESULT = (Cause.LOST, Cause.LEASE_EXPIRED, Cause.VACATED, Cause.REVOKED, Cause.MOVED)


class Violation(Exception):  # noqa: N818 - a finding, not an error of the program that raises it
    """A violated invariant, of a task or (None) of a whole module."""

    def __init__(self, text: str, task: TaskId | None = None) -> None:
        super().__init__(text)
        self.task = task


class Checks:
    """Records what machines do, and raises `Violation` (mutable)."""

    def __init__(
        self,
        machines: Mapping[SystemId, Description],
        clocks: Mapping[SystemId, DriftingClock],
        *,
        secrecy: Secrecy = NO_SECRECY,
    ) -> None:
        self.agenda = Agenda()
        """The agenda of the simulation, set once there is one."""
        self.begun: dict[AttemptId, SystemId] = {}
        self.ran: dict[AttemptId, AttemptEnded] = {}
        """How the attempts that ran have ended."""
        self.finals: dict[TaskId, TaskRow] = {}
        self.overstated: dict[tuple[SystemId, SystemId], None] = {}
        """Systems that counted less usage than a neighbor stated, each with that neighbor."""
        self.is_forgetful = False
        """Whether a module may lose its state, so that others may repeat work."""
        self.may_repeat = False
        """Whether a module may restart from older rows: its tasks, or those that ran there, may run and end again."""
        self.secrecy = secrecy
        self._hidden = HiddenIds()
        self._machines, self._clocks = machines, clocks
        self._running: dict[SystemId, dict[AttemptId, Need]] = {system: {} for system in machines}
        self._paused: dict[AttemptId, None] = {}
        self._frozen: dict[SystemId, bool] = {}
        self._rows: dict[TaskId, TaskRow] = {}
        self._order = StartOrder()
        self._untried: dict[TaskId, dict[TaskId, TaskRow]] = {}
        """Submissions with members that ended before they were tried, and how."""
        self._claims: dict[ClaimId, GrantedClaimRow] = {}
        self._claim_of: dict[AttemptId, ClaimId] = {}
        self._assigned: dict[AttemptId, tuple[Counted, ...]] = {}
        """The counted things of each attempt that runs."""
        self._reported: Counter[TaskId] = Counter()
        self._reopenings: Counter[TaskId] = Counter()
        self._retried: dict[TaskId, None] = {}
        """Submissions whose failed tasks may run again."""
        self._reopened: dict[TaskId, int] = {}
        """Tasks that were retried, with the number of their last attempt before."""
        self._taken_back: dict[TaskId, int] = {}
        """Tasks of which an attempt was revoked by hand, with its number: how it ends does not count."""
        self._unchecked: Counter[SystemId] = Counter()
        """Events of each module since its invariants were last checked."""
        self._parties: dict[ClaimId, dict[SystemId, None]] = {}
        """The origin and the hops of each claim."""
        self._senders: dict[tuple[SystemId, AttemptId], dict[SystemId, None]] = {}
        """The systems that sent an attempt to a module."""
        self._log: deque[tuple[int, SystemId, Event | Action | str]] = deque(maxlen=_REMEMBERED)

    def last_about(self, task: TaskId | None, count: int) -> list[str]:
        """Return the latest events and actions as text, of a task or of all."""
        lines = []
        for at, system, value in reversed(self._log):
            text = _text(system, value)
            if text and (task is None or _mentions(text, task)):
                lines.append(f"{at / SECOND:12.6f} {text}")
            if len(lines) == count:
                break
        return lines[::-1]

    def note(self, system: SystemId, value: Event | Action | str) -> None:
        """Record an event or action, for a report."""
        self._log.append((self.agenda.now, system, value))

    def happened(self, system: SystemId, event: Event) -> None:
        """Record an event, and who sent tasks."""
        self.note(system, event)
        if isinstance(event, TransferReceived):
            for task in event.message.tasks:
                attempt = self._hidden.attempt(task.attempt)
                self._senders.setdefault((system, attempt), {})[event.sender] = None

    def handled(self, state: ModuleState) -> None:
        """Check the core's invariants, for a module with many tasks not after every event."""
        self._unchecked[state.system] += 1
        tasks = len(state.origin.tasks) + state.origin.waiting + len(state.executor.attempts)
        if self._unchecked[state.system] * _TASKS_PER_CHECK >= tasks:
            self._unchecked[state.system] = 0
            for violation in violations(state):
                raise Violation(violation)

    def committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        """Check that a task ends once, and is forgotten only after that."""
        for write in writes:
            self.note(system, write)
            self._hidden.note(write)
            match write:
                case Store(row=TaskRow() as row):
                    self._on_task(row)
                case Store(row=SubmissionRow() as submission):
                    self._order.stored(submission)
                    self._on_untried(submission)
                case Forget(key=(RowKind.SUBMISSION, TaskId() as task)):
                    if (why := self._order.forget(task)) and not self.may_repeat:
                        raise Violation(f"{task} is forgotten, and {why}", task)
                case Store(row=GrantedClaimRow() as claim):
                    self._claims[claim.id] = claim
                case Store(row=(HeldClaimRow() | PassedClaimRow()) as part):
                    self._parties.setdefault(self._hidden.claim(part.id), {})[system] = None
                case _:
                    continue

    def forgotten(self, submission: TaskId) -> SubmissionRow | None:
        """Return the last row of a submission that its module has forgotten; None if it has not."""
        return self._order.forgotten.get(submission)

    def expect_retry(self, submission: TaskId) -> None:
        """Allow failed tasks of a submission to run again, at the request of a user."""
        self._retried[submission] = None

    def acted(self, system: SystemId, effect: Effect) -> None:
        """Check that a task is reported as ended only after its end is stored, and once."""
        self.note(system, effect)
        if isinstance(effect, Report) and effect.code is ReportCode.OVERSTATED:
            self.overstated[system, effect.neighbor] = None
        if isinstance(effect, SendTasks):
            for task in effect.message.tasks:
                attempt, claim = self._hidden.attempt(task.attempt), self._hidden.claim(effect.message.claim)
                self._check_right(system, attempt, claim=claim)
        if isinstance(effect, TaskEnded) and not self.may_repeat and effect.task not in self._untried:
            if effect.task not in self.finals and effect.task not in self._reopened:
                raise Violation(f"{effect.task} is reported as ended, but its end is not stored", effect.task)
            if self._reported[effect.task] > self._reopenings[effect.task]:
                raise Violation(f"{effect.task} is reported as ended for a second time", effect.task)
            self._reported[effect.task] += 1

    def began(self, system: SystemId, attempt: AttemptId, /, start: StartAttempt) -> None:
        """Check that an attempt may run, and that there is room for it."""
        self.note(system, f"the machine begins {attempt}")
        attempt = self._hidden.attempt(attempt)
        if not self.may_repeat:
            self._check_new(system, attempt)
        self.begun[attempt] = system
        self._claim_of[attempt] = start.claim
        self._running[system][attempt] = _need_of(self._claims[start.claim])
        self._check_right(system, attempt, claim=start.claim)
        self._check_alone(system, attempt)
        self._check_wanted(attempt)
        if not self.may_repeat and (why_not := self._order.why_not(attempt.task)):
            raise Violation(f"{attempt} begins on {system}, but {why_not}", attempt.task)
        self._order.begun(attempt.task)
        self._check_at_once(system, attempt)
        self._check_room(system, attempt)
        self._check_assigned(system, attempt, start.assigned)

    def _check_assigned(self, system: SystemId, attempt: AttemptId, assigned: tuple[Counted, ...]) -> None:
        """Check that an attempt has what its claim promises, and nothing that another one on its machine has."""
        self._assigned[attempt] = assigned
        amounts = tuple((things.name, len(things.numbers)) for things in assigned)
        if amounts != self._claims[self._claim_of[attempt]].uses:
            raise Violation(f"{attempt} begins on {system} with {amounts} of counted things", attempt.task)
        running = [each for one in self._running[system] for each in self._assigned.get(one, ())]
        taken = [(things.name, number) for things in running for number in things.numbers]
        if len(set(taken)) < len(taken):
            raise Violation(f"with {attempt}, two tasks on {system} have one thing: {sorted(taken)}", attempt.task)

    def _check_right(self, system: SystemId, attempt: AttemptId, *, claim: ClaimId) -> None:
        """Check that a module got an attempt from a system with a part in its claim; the origin has it from no one."""
        senders = self._senders.get((system, attempt), {})
        if senders and senders.keys().isdisjoint(self._parties.get(claim, {})):
            raise Violation(f"{system} takes {attempt} from {', '.join(senders)} without a right", attempt.task)

    def _check_new(self, system: SystemId, attempt: AttemptId) -> None:
        task = attempt.task
        if attempt in self.begun:
            raise Violation(f"{attempt} begins on {system}, and did so on {self.begun[attempt]} before", task)
        row = self._rows.get(task)
        if row is not None and row.attempt > attempt.number:
            raise Violation(f"{attempt} begins on {system} after attempt {row.attempt} was bound", task)
        if task in self.finals:
            raise Violation(f"{attempt} begins on {system} after its task has ended", task)

    def stopped(self, system: SystemId, ended: AttemptEnded) -> None:
        """Record how an attempt ended on its machine."""
        self.note(system, f"on the machine, {ended.attempt} ends: {_ending(ended)}")
        attempt = self._hidden.attempt(ended.attempt)
        self._running[system].pop(attempt, None)
        self._assigned.pop(attempt, None)
        self._paused.pop(attempt, None)
        if attempt in self.begun:
            self.ran[attempt] = ended

    def paused(self, system: SystemId, attempt: AttemptId, *, is_paused: bool) -> None:
        """Check that there is a slot for an attempt that is resumed."""
        self.note(system, f"the machine {'suspends' if is_paused else 'resumes'} {attempt}")
        attempt = self._hidden.attempt(attempt)
        if is_paused:
            self._paused[attempt] = None
        else:
            self._paused.pop(attempt, None)
            self._check_room(system, attempt)

    def froze(self, system: SystemId, *, is_frozen: bool) -> None:
        """Check that no attempt of a thawing machine has a successor that runs elsewhere."""
        self.note(system, "freezes" if is_frozen else "thaws")
        self._frozen[system] = is_frozen
        if not is_frozen:
            for attempt in self._running[system]:
                self._check_alone(system, attempt)

    def carried(self, sender: SystemId, to: SystemId, body: bytes, /) -> None:
        """Check that a message that leaves a site carries nothing that its border hides."""
        wrong = self.secrecy.why_wrong(sender, to, body)
        if wrong:
            raise Violation(wrong)

    def is_shown_as(self, system: SystemId, name: str, *, origin: SystemId) -> bool:
        """Return whether an origin may see a system under a name: its own, or that of a border between them."""
        inside = self.secrecy.inside.get(SystemId(name), frozenset())
        return name == system or system in inside or origin in inside

    def _on_task(self, row: TaskRow) -> None:
        before = self.finals.get(row.id)
        if before is not None and self._may_reopen(before, row):
            del self.finals[row.id]
            self._reopenings[row.id] += 1
            self._reopened[row.id] = row.attempt
        elif before is not None:
            raise Violation(f"{row.id} was {before.state}, and is stored as {row.state} again", row.id)
        known = self._rows.get(row.id)
        if known is not None and row.attempt < known.attempt and not self.may_repeat:
            raise Violation(f"{row.id} goes back from attempt {known.attempt} to {row.attempt}", row.id)
        self._rows[row.id] = row
        if row.is_revoked:
            self._taken_back[row.id] = row.attempt
        if row.state is not TaskState.EXECUTING:
            self.finals[row.id] = row
            self._order.ended(row)

    def _on_untried(self, submission: SubmissionRow) -> None:
        """Check that members that ended untried end once; those that are retried wait again without a row."""
        ended = {row.id: row for row in with_untried(submission, ())}
        before = self._untried.get(submission.id, {})
        for task in before.keys() - ended.keys():
            if self._rows.get(task) is before[task]:
                self._on_task(replace(before[task], state=TaskState.EXECUTING))
                del self._rows[task]
        for task, row in ended.items():
            if task not in self._rows:
                self._on_task(row)
        if ended or before:
            self._untried[submission.id] = {task: self._rows[task] for task in ended}

    def _may_reopen(self, before: TaskRow, row: TaskRow) -> bool:
        """Return whether a failed task may run again at the request of its user."""
        if self.may_repeat:
            return True
        return row.state is TaskState.EXECUTING and row.id.submission in self._retried and has_failed(before)

    def _check_alone(self, system: SystemId, attempt: AttemptId) -> None:
        if self.may_repeat:
            return
        for other, running in self._running.items():
            for one in running:
                if one.task == attempt.task and one != attempt and not self._frozen.get(other):
                    raise Violation(f"{one} runs on {other}, and {attempt} on {system} at once", attempt.task)

    def _check_at_once(self, system: SystemId, attempt: AttemptId) -> None:
        """Check that no more members of an array run than its user allows."""
        at_once = self._order.at_once(attempt.task)
        if not at_once or self.may_repeat:
            return
        running = {
            one.task
            for other, attempts in self._running.items()
            for one in attempts
            if one.task.submission == attempt.task.submission and not self._frozen.get(other)
        }
        if len(running) > at_once:
            raise Violation(f"with {attempt} on {system}, {len(running)} of {at_once} run at once", attempt.task)

    def _check_wanted(self, attempt: AttemptId) -> None:
        """Check that the previous attempt was lost or failed: an available result is not discarded."""
        before = AttemptId(attempt.task, attempt.number - 1)
        if before.number <= max(self._reopened.get(attempt.task, 0), self._taken_back.get(attempt.task, 0)):
            return
        ran = self.ran.get(before)
        if ran is None or self.is_forgetful or ran.cause in _NO_RESULT or (ran.exit_code and not ran.cause):
            return
        claim = self._claims[self._claim_of[before]]
        if self._clocks[claim.id.executor].read(self.agenda.now) < claim.lease_until:
            raise Violation(f"{attempt} begins, although the one before has a result: {_ending(ran)}", attempt.task)

    def _check_room(self, system: SystemId, attempt: AttemptId) -> None:
        running = self._running[system]
        taken = (
            ("slots", sum(need.slots for one, need in running.items() if one not in self._paused)),
            ("total_mem", sum(need.mem_bytes for need in running.values())),
            ("total_disk", sum(need.disk_bytes for need in running.values())),
        )
        for name, amount in taken:
            there = self._machines[system][name]
            if isinstance(there, int) and amount > there:
                raise Violation(
                    f"with {attempt}, {system} runs tasks that take {amount} of {there} {name}", attempt.task
                )


def _text(system: SystemId, value: Event | Action | str) -> str:
    if isinstance(value, str):
        return f"{system}: {value}"
    if isinstance(value, Event):
        text = event_text(system, value)
        # Sent and received messages have the same text otherwise.
        return f"arrived: {text}" if isinstance(value, ControlReceived | TransferReceived | VectorReceived) else text
    return action_text(system, value)


def _ending(ended: AttemptEnded) -> str:
    return ended.cause or (f"exit code {ended.exit_code}" if ended.exit_code is not None else f"signal {ended.signal}")


def _need_of(claim: GrantedClaimRow) -> Need:
    requirement = predicate_parser("")
    assert not isinstance(requirement, BadPredicate), "the empty predicate is always true"
    return need_of(claim.tdv, requirement)


def _mentions(text: str, task: TaskId) -> bool:
    """Return whether a text names a task: `s1.2.3`, not only `s1.2.30`."""
    return re.search(rf"(?<![\w.]){re.escape(str(task))}(?![\w.])", text) is not None
