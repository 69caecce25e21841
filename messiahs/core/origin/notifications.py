"""Notifications of the ends of tasks (not in the papers).

The row of a notification is stored with the end of its submission, and replaced by the outcome that the host reports. A
host that is killed in between notifies again: at least once, therefore. A retry that ends is another end.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Decision, Forget, Notify, Store
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.notifications import NotificationRow, Notified
from messiahs.core.interface.rows import Row, RowKind, SubmissionRow
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState

_WORST_FIRST: Final = (TaskState.DENIED, TaskState.KILLED, TaskState.REVOKED, TaskState.ABORTED, TaskState.FINISHED)


def note_end(
    state: ModuleState, row: SubmissionRow, endings: Collection[tuple[TaskState, int | None]], /, now: Instant
) -> tuple[Action, ...]:
    """Store the end of a submission, whose tasks ended in these ways, for a user who is to be notified of it."""
    if row.notification is None:
        return ()
    ended_in = {ending for ending, _ in endings}
    final = next(each for each in _WORST_FIRST if each in ended_in)
    codes = {code if ending is not TaskState.KILLED else None for ending, code in endings}
    code = int(codes != {0} or ended_in != {TaskState.FINISHED}) if row.members else next(iter(codes))
    notice = NotificationRow(
        id=row.id,
        notification=row.notification,
        user=row.user,
        name=row.name,
        state=final,
        exit_code=code,
        submitted_at=row.submitted_at,
        ended_at=now,
    )
    state.origin.notifications[row.id] = notice
    return (Store(row=notice), Notify(notice=notice))


def on_notified(state: ModuleState, event: Notified, now: Instant) -> tuple[Action, ...]:
    """Store the outcome; that of an earlier end, or of a submission that is forgotten, changes nothing."""
    notice = state.origin.notifications.get(event.id)
    if notice is None or notice.ended_at != event.ended_at:
        return ()
    del state.origin.notifications[event.id]
    given = replace(notice, given_at=now, problem=event.problem, output=event.output)
    decision = Decision(what="notified", task=str(event.id), text=event.problem)
    return (Forget(key=(RowKind.NOTIFICATION, event.id)), Store(row=given), decision)


def resume(state: ModuleState, rows: Iterable[Row]) -> tuple[Action, ...]:
    """Notify of the ends of which that was not done before the restart, in the order of the ends."""
    found = [row for row in rows if isinstance(row, NotificationRow) and row.given_at is None]
    pending = sorted(found, key=lambda row: (row.ended_at, row.id))
    state.origin.notifications.update((row.id, row) for row in pending)
    return tuple(Notify(notice=row) for row in pending)


def forget(state: ModuleState, submission: TaskId) -> tuple[Action, ...]:
    """Forget the notification of a submission that is forgotten, whether it was given or not."""
    state.origin.notifications.pop(submission, None)
    return tuple(Forget(key=(kind, submission)) for kind in (RowKind.NOTIFICATION, RowKind.NOTIFIED))
