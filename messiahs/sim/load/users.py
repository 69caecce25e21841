"""Users of a simulated federation: they repeat a submit until it is answered, and may cancel or retry it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Answer
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import Dependency, Predecessor, WantedOutput, When
from messiahs.core.interface.events import (
    AnswerTo,
    CancelRequested,
    Event,
    RetryRequested,
    Submitted,
    WorkflowSubmitted,
)
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.origin.array_members import members_of
from messiahs.core.origin.completion import ending_of, ends_in, has_ended_well, with_ends_of_members
from messiahs.core.origin.how_ended import how_ended, how_some_ended
from messiahs.core.origin.member_runs import run_of
from messiahs.core.origin.retry import RETRY_FIRST
from messiahs.core.origin.submission import NOT_STORED
from messiahs.sim.checks.invariants import Checks, Violation
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedHost

_PATIENCE_NS = 5 * SECOND
_FULL = "no_space"


class Question(Enum):
    """A request of a user to a module."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    RETRY = "retry"


@dataclass(slots=True, kw_only=True)
class Order:
    """One submit of one user, with its outcome (mutable). `is_certain`: some machine accepts it."""

    system: SystemId
    event: Submitted
    at_ns: int
    is_certain: bool
    cancelled_at_ns: int | None = None
    cancelled_member: int = 0
    retried_at_ns: int | None = None
    """When its user requests another run of the tasks that have failed by then."""
    retried_member: int = 0
    after: tuple[tuple["Order", When], ...] = ()
    """Orders of the same user's module for whose tasks this one waits, each with what has to have happened."""
    bundle: tuple["Order", ...] = ()
    """Orders of the same module that are submitted together, by the first one, each after those for which it waits."""
    task: TaskId | None = None
    cancel_answered_at: Instant | None = None
    is_retry_answered: bool = False

    @property
    def may_be_denied(self) -> bool:
        """Whether the user prefers a denial to an unlimited wait."""
        is_dependent = any(when in (When.OK, When.EACH) for _, when in self.after)
        return not self.event.waits or self.event.deadline_ns is not None or not self.is_certain or is_dependent

    def wanted_of(self, other: "Order", when: When) -> tuple[WantedOutput, ...]:
        """Return what it takes of another order: something, if it waits with `OK` for that one first."""
        takes = when is When.OK and other is self.after[0][0]
        return (WantedOutput(name="out", to="taken"),) if takes else ()

    def on(self, other: "Order", when: When) -> TaskId | None:
        """Return the task for which it waits; outputs are taken of the first member of an array."""
        is_member = other.event.members and self.wanted_of(other, when)
        return other.task._replace(member=1) if other.task is not None and is_member else other.task


@dataclass(slots=True)
class Users:
    """All users (mutable). Each repeats a request, under the same key, until it is answered."""

    federation: SimulatedFederation
    checks: Checks
    orders: list[Order]
    _asked: dict[AnswerTo, tuple[Question, Order]] = field(default_factory=dict)

    def begin(self) -> None:
        """Schedule all requests."""
        for order in self.orders:
            self._later(order.at_ns, order, self._submit)
            if order.cancelled_at_ns is not None:
                self._later(order.cancelled_at_ns, order, self._cancel)
            if order.retried_at_ns is not None:
                self._later(order.retried_at_ns, order, self._retry)

    @property
    def are_answered(self) -> bool:
        """Whether every request was answered."""
        return all(
            order.task is not None
            and (order.cancelled_at_ns is None or order.cancel_answered_at is not None)
            and (order.retried_at_ns is None or order.is_retry_answered)
            for order in self.orders
        )

    def acted(self, system: SystemId, action: Action) -> None:
        """Handle answers."""
        if not isinstance(action, Answer):
            return
        asked = self._asked.get(action.answer_to)
        if asked is None:
            # An administrator asked.
            return
        question, order = asked
        if action.problem:
            # The end of a task may not be stored yet: the same is requested again later.
            order.is_retry_answered |= question is Question.RETRY and action.problem.endswith(RETRY_FIRST)
            is_early = question is Question.RETRY or action.problem.endswith(NOT_STORED)
            if not is_early and not action.problem.startswith(_FULL):
                raise Violation(f"{system} refuses a {question.value}: {action.problem}")
            return
        assert action.task is not None
        if question is Question.CANCEL:
            order.cancel_answered_at = self.federation.members[system].now()
            return
        if question is Question.RETRY:
            order.is_retry_answered = True
            return
        for place, each in enumerate(order.bundle or (order,)):
            task = action.task._replace(number=action.task.number + place)
            if each.task is not None and each.task != task and each.task.epoch == task.epoch:
                raise Violation(f"one submit of {system} became {each.task} and {task}", task)
            each.task = task

    def verdicts(self) -> Iterator[tuple[TaskId, str]]:
        """Yield defects in how tasks ended; tasks of a module that was wiped are left out."""
        for order in self.orders:
            host = self.federation.members[order.system]
            if order.task is None or order.task.epoch != host.epoch:
                continue
            rows = {row.id: row for row in host.disk.submissions()}
            submission = rows.get(order.task)
            if submission is not None:
                ended = {row.id: row for row in host.disk.members(submission)}
            elif (submission := self.checks.forgotten(order.task)) is not None:
                ended = self.checks.finals
            else:
                yield order.task, f"{order.task} was answered, but is not on the disk of {order.system}"
                continue
            for member in members_of(submission):
                task = submission.id._replace(member=member)
                yield from ((task, text) for text in self._judge(order, submission, ended.get(task)))

    def _judge(self, order: Order, submission: SubmissionRow, row: TaskRow | None) -> Iterator[str]:
        if row is None or row.state is TaskState.EXECUTING:
            yield "a task has not ended"
            return
        is_cancel = order.cancelled_at_ns is not None and order.cancelled_member in (0, row.id.member)
        result = row.result
        match row.state:
            case TaskState.FINISHED:
                yield from self._judge_finished(submission, row)
                if is_cancel and _is_later(row.ended_at, order.cancel_answered_at):
                    yield f"{row.id} finished after its cancel was answered"
            case TaskState.KILLED if not is_cancel:
                yield f"{row.id} was killed, but no user cancelled it"
            case TaskState.DENIED if not order.may_be_denied:
                yield f"{row.id} was denied, but should have waited"
            case TaskState.ABORTED if result is None or result.cause != Cause.TIME_LIMIT:
                yield f"{row.id} was aborted for {result.cause if result is not None else 'nothing'}"
            case TaskState.REVOKED:
                yield f"{row.id} ended as revoked"
            case _:
                return

    def _judge_finished(self, submission: SubmissionRow, row: TaskRow) -> Iterator[str]:
        result = row.result
        if result is None:
            yield f"{row.id} finished without a result"
            return
        if self.checks.may_repeat:
            return
        ran = self.checks.ran.get(result.attempt)
        where = self.checks.begun.get(result.attempt)
        if result.attempt.number != row.attempt or ran is None or ran.exit_code != result.exit_code:
            yield f"{row.id} finished with {result}, but its machine reports {ran}"
        if where is None or not self.checks.is_shown_as(where, row.executed_on, origin=row.id.system):
            yield f"{row.id} is reported to have run on {row.executed_on}, but ran on {where}"
        is_late = submission.deadline_at is not None and row.ended_at is not None
        if result.exit_code and row.failures < submission.retries and not is_late:
            yield f"{row.id} finished with exit code {result.exit_code}, but had retries left"

    def _submit(self, order: Order) -> None:
        if order.task is not None or (order.bundle and order.bundle[0] is not order):
            return
        host = self.federation.members[order.system]
        if host.is_up and order.bundle:
            self._ask(Question.SUBMIT, order, partial(_workflow, order.bundle))
        elif host.is_up and all(other.task is not None for other, _ in order.after):
            # A module whose state was wiped or restored may not know all of them.
            named = (
                Dependency(on=on, when=when.value, outputs=order.wanted_of(other, when))
                for other, when in order.after
                if (on := order.on(other, when)) is not None
            )
            after = tuple(predecessor_at(host, each) for each in named if host.disk.submission(each.on) is not None)
            self._ask(Question.SUBMIT, order, lambda answer_to: replace(order.event, answer_to=answer_to, after=after))
        self._later(_PATIENCE_NS, order, self._submit)

    def _cancel(self, order: Order) -> None:
        if order.cancel_answered_at is not None:
            return
        if order.task is not None:
            wanted = order.task._replace(member=order.cancelled_member)
            self._ask(Question.CANCEL, order, lambda answer_to: CancelRequested(answer_to=answer_to, task=wanted))
        self._later(_PATIENCE_NS, order, self._cancel)

    def _retry(self, order: Order) -> None:
        """Request as the daemon does: with the rows on the disk."""
        host = self.federation.members[order.system]
        if order.task is not None and order.task.epoch != host.epoch:
            # A module whose state was wiped does not know the task.
            order.is_retry_answered = True
        task = order.task
        if task is not None and self.checks.forgotten(task) is not None:
            # There is nothing to retry any more.
            order.is_retry_answered = True
        if order.is_retry_answered:
            return
        submission = host.disk.submission(task) if task is not None and host.is_up else None
        if task is not None and submission is not None:
            known = queries.live_submission(host.module.state, task) or submission
            members = run_of(known, task._replace(member=order.retried_member))
            tried = tuple(row for row in host.disk.stored(known) if members[0] <= row.id.member <= members[1])
            asked = (each for each in known.after if not each.is_met or each.when == When.EACH)
            after = tuple(predecessor_at(host, each) for each in asked)
            self.checks.expect_retry(task)
            self._ask(
                Question.RETRY,
                order,
                lambda answer_to: RetryRequested(
                    answer_to=answer_to, submission=known, members=members, tried=tried, after=after
                ),
            )
        self._later(_PATIENCE_NS, order, self._retry)

    def _ask(self, question: Question, order: Order, make: Callable[[AnswerTo], Event]) -> None:
        answer_to = AnswerTo(len(self._asked) + 1)
        self._asked[answer_to] = (question, order)
        self.federation.post(order.system, make(answer_to))

    def _later(self, delay_ns: int, order: Order, happen: Callable[[Order], None]) -> None:
        self.federation.later(delay_ns, lambda: happen(order))


def _workflow(bundle: tuple[Order, ...], answer_to: AnswerTo) -> WorkflowSubmitted:
    places = {id(order): place for place, order in enumerate(bundle)}
    within = (tuple((places[id(other)], when.value) for other, when in order.after) for order in bundle)
    return WorkflowSubmitted(
        answer_to=answer_to,
        key=bundle[0].event.key,
        submissions=tuple(order.event for order in bundle),
        within=tuple(within),
        outputs=tuple(
            tuple(
                (places[id(other)], one)
                for other, when in order.after
                for one in ([] if other.event.members else order.wanted_of(other, when))
            )
            for order in bundle
        ),
    )


def predecessor_at(host: SimulatedHost, dependency: Dependency) -> Predecessor:
    """Return a dependency with how its tasks ended by the rows on the disk, as the daemon does."""
    submission = host.disk.submission(dependency.on)
    if submission is None:
        return Predecessor(dependency=dependency)
    if dependency.when == When.EACH:
        return with_ends_of_members(dependency, submission, ends_in(host.disk.stored(submission)))
    rows = [row for row in host.disk.members(submission) if dependency.on.member in (0, row.id.member)]
    is_stored = len(rows) == (1 if dependency.on.member else len(members_of(submission)))
    if not is_stored or any(row.state is TaskState.EXECUTING for row in rows):
        return Predecessor(dependency=dependency)
    how = how_some_ended(Counter(map(ending_of, rows)), members=len(rows)) if rows[1:] else how_ended(rows[0])
    return Predecessor(dependency=dependency, is_good=all(map(has_ended_well, rows)), how=how)


def _is_later(one: Instant | None, other: Instant | None) -> bool:
    return one is not None and other is not None and one > other
