"""Finding tasks for users: live tasks in the core, ended ones in the store."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from messiahs.core import queries
from messiahs.core.interface.dependencies import Dependency, When
from messiahs.core.interface.messages import Reason, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import row_of, rows_of, tdv_of, with_untried
from messiahs.core.origin.awaited import awaits_outputs
from messiahs.core.origin.completion import MemberEnds, ended_in, ends_in, has_ended_well
from messiahs.core.origin.holds import hold_of
from messiahs.core.origin.member_runs import Run, merged, run_of, runs_among, without
from messiahs.daemon.api.paced_handlers import InThread, NextSlice
from messiahs.daemon.api.unknown_tasks import members_for, why_forgotten, why_lost, why_no_member
from messiahs.daemon.host.host import Host
from messiahs.daemon.notifications.giving import failed_try_document
from messiahs.daemon.storage.documents import Document, array_document, delay_document, notified_document, task_document
from messiahs.daemon.storage.known_submissions import LARGE_BYTES
from messiahs.errors import MessiahsError

_TASK_TEXT = re.compile(
    r"(?P<system>[a-z0-9.-]+?)\.(?P<number>[1-9]\d{0,17})(\.(?P<member>[1-9]\d{0,9}))?"
    r"(#(?P<attempt>[1-9]\d{0,9}))?"
)
_MEMBER_TEXT = re.compile(r"(?P<array>[a-z0-9.-]+\.[1-9]\d{0,17})\.(?P<member>\d{1,10})")

ROWS_OF_AN_ACT: Final = 256
"""Rows of members that are changed before other work is let in."""
_PAGE_MEMBERS: Final = 1_000
"""Members that are looked at before other work is let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A task, or (`row` None) all tasks of a submission with several members."""

    id: TaskId
    submission: SubmissionRow
    row: TaskRow | None

    @property
    def is_final(self) -> bool:
        """Whether its state is final."""
        if self.row is None:
            return self.submission.ended_at is not None
        return self.row.state is not TaskState.EXECUTING

    @property
    def ended_at(self) -> Instant:
        """When it ended, or the last member of an array; 0 if that is not known."""
        return (self.submission.ended_at if self.row is None else self.row.ended_at) or Instant(0)


class AttemptError(MessiahsError):
    """A user named an attempt that is not the present one of its task; the text says which one is."""


def states_of(found: Found) -> list[str]:
    """Return the states of a task, or those of the members of an array that has ended, sorted."""
    if found.row is not None:
        return [found.row.state.value]
    return sorted({one.state.value for one in found.submission.endings})


def system_in(text: str) -> str:
    """Return the system in the id of a task, an array or an attempt; empty if the text is no such id."""
    match = _TASK_TEXT.fullmatch(text)
    return "" if match is None else match["system"]


class Tasks:
    """The tasks of one module, live and ended."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def find(self, text: str) -> Found | None:
        """Find the task or tasks named by an id such as `blays.17` or `blays.17.3`.

        An attempt such as `blays.17.3#2` stands for its task if it is the present or last one; else raises
        `AttemptError`.
        """
        task = self.id_of(text)
        return self._found(text, task, None if task is None else self._submission(task))

    async def look_up(self, text: str) -> Found | None:
        """Do as `find` in a handler: a large array that has ended is read in a thread, and its reader pays for that."""
        task = self.id_of(text)
        if task is None or queries.live_submission(self._host.module.state, task) is not None:
            return self.find(text)
        if self._host.store.unread_bytes(task) < LARGE_BYTES:
            return self.find(text)
        stored = await InThread(partial(self._host.store.submission, task))
        # A retry may have opened it meanwhile.
        return self._found(text, task, queries.live_submission(self._host.module.state, task) or stored)

    def _found(self, text: str, task: TaskId | None, submission: SubmissionRow | None) -> Found | None:
        match = _TASK_TEXT.fullmatch(text)
        if match is None or task is None or submission is None or task.member > submission.members:
            return None
        is_array = bool(submission.members and not task.member)
        found = Found(id=task, submission=submission, row=None if is_array else self._row(submission, task))
        if match["attempt"] is not None:
            _check_attempt(found, int(match["attempt"]))
        return found

    def id_of(self, text: str) -> TaskId | None:
        """Return the id that a text names, of a task of this module that may be forgotten; None if it is no such id."""
        match = _TASK_TEXT.fullmatch(text)
        if match is None or match["system"] != self._host.system:
            return None
        array = queries.submission_numbered(self._host.module.state, int(match["number"]))
        return array._replace(member=int(match["member"] or 0))

    def has_key(self, key: ClientKey) -> bool:
        """Return whether a submit with a key is stored."""
        return queries.has_key(self._host.module.state, key)

    async def why_unknown(self, text: str) -> str:
        """Return why an id names no task, as a sentence: its array has other members, or it is not known any more.

        Empty for any other text.
        """
        return (await self.why_each_unknown([text])).get(text, "")

    async def why_each_unknown(self, names: Collection[str]) -> dict[str, str]:
        """Do as `why_unknown` for many ids, where that has words; the items of each array are searched once."""
        of_array: dict[str, list[str]] = {}
        for text in names:
            match = _MEMBER_TEXT.fullmatch(text)
            of_array.setdefault("" if match is None else match["array"], []).append(text)
        reasons: dict[str, str] = {}
        async for array in in_turn(of_array):
            found, texts = await self.look_up(array), of_array[array]
            if found is None:
                reasons |= {text: self._why_forgotten(text) for text in texts}
                continue
            wanted = {text.rpartition(".")[2] for text in texts}
            members = await InThread(partial(members_for, found.submission.items, wanted))
            count = found.submission.members
            reasons |= {text: why_no_member(text, found.id, count=count, members=members) for text in texts}
        return {text: reasons[text] for text in names if reasons[text]}

    def _why_forgotten(self, text: str) -> str:
        match = _TASK_TEXT.fullmatch(text)
        if match is None or match["system"] != self._host.system:
            return ""
        number = int(match["number"])
        array = queries.submission_numbered(self._host.module.state, number)
        if not queries.is_forgotten(self._host.module.state, array):
            return ""
        if (lost := queries.lost_with(self._host.module.state, number)) is not None:
            return why_lost(text, lost)
        return why_forgotten(text, queries.policy_of(self._host.module.state).timeouts.retention_ns)

    async def find_all(self) -> AsyncIterator[Found]:
        """Yield every submission, oldest first, page by page; other work continues in between."""
        last: TaskId | None = None
        while page := await InThread(partial(self._host.store.submissions, after=last)):
            for submission, task in page:
                yield self.as_it_is(submission, task)
            last = page[-1][0].id

    async def members_of(self, found: Found) -> AsyncIterator[Found]:
        """Yield the members of an array, page by page; a single task is its own only member."""
        if found.row is not None:
            yield found
            return
        submission = found.submission
        member, last = 1, submission.members
        while member <= last:
            page = await InThread(partial(self._host.store.members_page, found.id._replace(member=member)))
            # After the last stored row, only members without a row remain.
            until = min(page[-1].id.member if page else last, member + _PAGE_MEMBERS - 1)
            known = {row.id: row for row in page if row.id.member <= until}
            tasks = [found.id._replace(member=number) for number in range(member, until + 1)]
            known |= {row.id: row for row in rows_of(submission, [task for task in tasks if task not in known])}
            for task in tasks:
                row = queries.live_task(self._host.module.state, task) or known[task]
                yield Found(id=task, submission=submission, row=row)
            member = until + 1

    async def document(self, found: Found) -> Document:
        """Describe a task with the reasons why it waits, or count the members of an array."""
        if found.row is None:
            return {**await self._array(found.submission), "notified": self._notified(found)}
        until = queries.may_run_until(self._host.module.state, found.row)
        is_behind = queries.waits_behind(self._host.module.state, found.id)
        document = task_document(
            found.row,
            found.submission,
            reasons=() if is_behind else self._reasons(found),
            may_run_until=until,
            after=self._conditions(found.submission, found.row),
        )
        is_final = document["state"] != TaskState.EXECUTING.value
        delay = None if is_final else queries.delay_of(self._host.module.state, found.row)
        # A member that is behind waits because as many others of its array are placed or run as its user allows.
        behind = found.submission.at_once if is_behind else None
        return {
            **document,
            "delay": None if delay is None else delay_document(delay),
            "behind": behind,
            "notified": self._notified(found),
        }

    def _notified(self, found: Found) -> Document | None:
        """Describe how the user was notified of an end; None for members, and if that was not to be, or is not due."""
        is_due = found.submission.notification is not None and not found.id.member
        row = self._host.store.notification(found.id) if is_due else None
        if row is None:
            return None
        failed = self._host.notifications.failed_try(row)
        return notified_document(row) | ({} if failed is None else failed_try_document(failed))

    async def _array(self, submission: SubmissionRow) -> Document:
        live = queries.array_progress(self._host.module.state, submission.id)
        if live is not None:
            return array_document(live.row, live.ended, live.tried, held=live.held)
        if submission.ended_at is None:
            # It has ended, and its row is about to be stored.
            submission = self._host.store.submission(submission.id) or submission
        if submission.endings:
            ended = Counter({(one.state, one.exit_code): one.count for one in submission.endings})
            return array_document(submission, ended, ())
        return await InThread(partial(self._counted, submission))

    def _counted(self, submission: SubmissionRow) -> Document:
        """Count by reading all rows: for an array of an earlier release, or one whose end is not stored yet."""
        stored = self._host.store.members(submission.id)
        return array_document(
            submission, ended_in(submission, stored), [row for row in stored if row.state is TaskState.EXECUTING]
        )

    def awaits_place(self, found: Found) -> bool:
        """Return whether a task waits for nothing but a place: neither for other tasks, nor for its turn or release."""
        row, submission = found.row, found.submission
        if row is None or row.state is not TaskState.EXECUTING or row.claim is not None:
            return False
        is_open = any(not each.is_met for each in self._conditions(submission, row)) or awaits_outputs(submission)
        is_held = hold_of(submission, found.id.member) is not None
        return not (is_open or is_held or queries.waits_behind(self._host.module.state, found.id))

    def _reasons(self, found: Found) -> tuple[Reason, ...]:
        row = found.row
        if row is None or row.state is not TaskState.EXECUTING:
            return ()
        if row.claim is not None:
            return queries.why_cut_off(self._host.module.state, row)
        if not self.awaits_place(found):
            # Nothing searches for it; what others of its shape wait for is not its reason.
            return queries.why_not_taken(self._host.module.state, found.id)
        tdv = tdv_of(found.submission, found.id.member)
        waiting = queries.why_waiting(self._host.module.state, tdv, found.submission.requirement)
        failed = queries.why_not_started(row)
        return waiting if failed is None else (failed, *waiting)

    def _conditions(self, submission: SubmissionRow, row: TaskRow) -> tuple[Dependency, ...]:
        """Return the dependencies of one task, with `EACH` on the member of the other array for which it waits."""
        return tuple(
            self._condition(each, row) if each.when == When.EACH and row.id.member else each
            for each in submission.after
        )

    def _condition(self, dependency: Dependency, row: TaskRow) -> Dependency:
        on, module = dependency.on._replace(member=row.id.member), self._host.module
        if row.attempt or queries.is_forgotten(module.state, on.submission):
            return replace(dependency, on=on, is_met=True)
        # A member that was never tried has not ended well.
        other = queries.live_task(module.state, on) or self._host.store.task(on)
        return replace(dependency, on=on, is_met=other is not None and has_ended_well(other))

    def as_it_is(self, stored: SubmissionRow, task: TaskRow | None) -> Found:
        """Return a submission that was read earlier as it is now: a live one as in the core, an ended one as read."""
        live = queries.live_submission(self._host.module.state, stored.id)
        submission = stored if live is None else live
        if live is None and stored.ended_at is None:
            # It has ended since.
            submission, task = self._host.store.submission(stored.id) or stored, None
        if submission.members:
            return Found(id=stored.id, submission=submission, row=None)
        row = queries.live_task(self._host.module.state, stored.id) or task or self._row(submission, stored.id)
        return Found(id=stored.id, submission=submission, row=row)

    def _submission(self, task: TaskId) -> SubmissionRow | None:
        return queries.live_submission(self._host.module.state, task) or self._host.store.submission(task)

    def stored(self, submission: SubmissionRow) -> list[TaskRow]:
        """Return the stored rows of a submission's tasks: of those that were tried."""
        return self._host.store.members(submission.id)

    def ended_or_tried(self, submission: SubmissionRow) -> tuple[TaskRow, ...]:
        """Return the rows of a submission's tasks, except those that wait and were never tried."""
        return tuple(with_untried(submission, self.stored(submission)))

    async def ends_of(self, array: TaskId) -> MemberEnds:
        """Return how the members of an array have ended that were tried, read page by page in a thread."""
        ends = [MemberEnds()]
        first = array
        while page := await InThread(partial(self._host.store.members_page, first)):
            ends.append(ends_in(page))
            first = array._replace(member=page[-1].id.member + 1)
        return _all_of(ends)

    def newer_ends(self, submission: SubmissionRow, known: MemberEnds) -> MemberEnds:
        """Add the members of an array that have ended since the others were read: few, so nobody is held up."""
        has_ended = {*known.good, *chain.from_iterable(members for _, members in known.bad)}
        still_open = queries.open_members(self._host.module.state, submission.id)
        others = merged((*runs_among(sorted(has_ended)), *still_open))
        runs = list(without([run_of(submission, submission.id)], others))
        if len(runs) > _PAGE_MEMBERS:
            runs = [(runs[0][0], runs[-1][1])]
        rows = (row for run in runs for row in self.stored_in(submission, run))
        return _all_of([known, ends_in(row for row in rows if row.id.member not in has_ended)])

    async def pages_of(self, found: Found) -> AsyncIterator[Run]:
        """Yield runs of members that have few stored rows each, so that an act on one of them holds up nobody.

        An array of an earlier release, which has no counts of how its members have ended, is one run.
        """
        first, last = run_of(found.submission, found.id)
        while found.row is None and (found.submission.endings or not found.is_final):
            start = found.id._replace(member=first)
            after = await InThread(partial(self._host.store.members_page, start, skip=ROWS_OF_AN_ACT, most=1))
            if not after:
                break
            yield first, after[0].id.member - 1
            first = after[0].id.member
        yield first, last

    def stored_in(self, submission: SubmissionRow, members: Run) -> tuple[TaskRow, ...]:
        """Return the stored rows of a submission's tasks that are among `members`."""
        rows: list[TaskRow] = []
        first, last = members
        while first <= last and (page := self._host.store.members_page(submission.id._replace(member=first))):
            rows.extend(row for row in page if row.id.member <= last)
            first = page[-1].id.member + 1
        return tuple(rows)

    def _row(self, submission: SubmissionRow, task: TaskId) -> TaskRow:
        live = queries.live_task(self._host.module.state, task)
        return live or self._host.store.task(task) or row_of(submission, task)


def _all_of(ends: Collection[MemberEnds]) -> MemberEnds:
    return MemberEnds(
        tuple(chain.from_iterable(each.good for each in ends)),
        tuple(chain.from_iterable(each.bad for each in ends)),
        tuple(chain.from_iterable(each.others for each in ends)),
    )


async def each_of(found: Iterable[Found]) -> AsyncIterator[Found]:
    """Yield those that are found already, for who takes an iterator of others, too."""
    for one in found:
        yield one


async def in_turn(names: Iterable[str]) -> AsyncIterator[str]:
    """Yield ids of which each is looked up next, in a slice of its own."""
    for text in names:
        yield text
        await NextSlice()


def _check_attempt(found: Found, attempt: int) -> None:
    if found.row is None:
        raise AttemptError(
            f"{found.id}#{attempt} is no attempt: {found.id} has {found.submission.members} tasks, and each has "
            f"attempts of its own, such as {found.id}.1#{attempt}"
        )
    if found.row.attempt == 0:
        raise AttemptError(f"{found.id} has not run yet, so there is no {found.id}#{attempt}: name {found.id}")
    if found.row.attempt != attempt:
        present = f"{found.id}#{found.row.attempt}"
        raise AttemptError(f"{found.id}#{attempt} is not the present attempt, {present}: name {present}, or {found.id}")
