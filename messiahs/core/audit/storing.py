"""Storing the audit log with other rows: what is counted needs no transaction of its own.

An attempt that was counted and not stored is counted again after a crash, because its report is repeated until its
origin has acknowledged it: acknowledgments pass after the rows are stored. The size of inputs is in no report, so the
rows of tasks that bring inputs are stored at once. What was denied or dropped is not repeated, and may be lost.
"""

from collections.abc import Mapping
from typing import Final

from messiahs.core.interface.actions import Action, Forget, SendControl, Store
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.messages import TaskStatusAck
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.state.module import ModuleState

STORED_AFTER_NS: Final = 250 * MILLISECOND
"""Rows that changed are stored with the next rows of the module, or after this time."""
WAITING_LIMIT: Final = 256
"""Actions that wait, and the attempts in each acknowledgment of them; beyond it the rows are stored at once."""
_ROW_ACTIONS: Final = (Store, Forget)


def with_audit(state: ModuleState, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
    """Return the actions of a step with the rows that changed, or without the acknowledgments that wait for them.

    The actions are as they leave the module: nothing that waits is translated at a border again.
    """
    audit = state.audit
    is_due, audit.is_due = audit.is_due, False
    if not (audit.changed or audit.folded or audit.waiting):
        return actions
    acks = [action for action in actions if _ends(action)] if audit.changed else []
    has_room = len(audit.waiting) + len(acks) <= WAITING_LIMIT and all(map(_may_wait, acks))
    if is_due or not has_room or any(isinstance(action, _ROW_ACTIONS) for action in actions):
        return (*_store_all(state), *actions)
    audit.waiting.extend(acks)
    if not state.timers.is_set(TimerKind.AUDIT, state.system):
        state.timers.set(TimerKind.AUDIT, state.system, after(now, STORED_AFTER_NS))
    return tuple(action for action in actions if not _ends(action)) if acks else actions


def unstored_rows(state: ModuleState) -> Mapping[int, AuditRow]:
    """Return the rows that differ from what is stored, by number, in order."""
    tasks = (state.audit.tasks[key].present() for key in state.audit.changed)
    folds = (state.audit.folds[key] for key in state.audit.folded)
    return {row.number: row for row in sorted((*tasks, *folds), key=lambda row: row.number)}


def _store_all(state: ModuleState) -> tuple[Action, ...]:
    """Store every row that changed, and send what waited for that."""
    audit = state.audit
    tasks = (Store(row=audit.tasks[key].present()) for key in audit.changed)
    folds = (Store(row=audit.folds[key]) for key in audit.folded)
    actions = (*tasks, *folds, *audit.waiting)
    audit.changed.clear()
    audit.folded.clear()
    audit.waiting.clear()
    state.timers.cancel(TimerKind.AUDIT, state.system)
    return actions


def _ends(action: Action) -> bool:
    """Return whether the receiver of an action no longer repeats a report."""
    if not isinstance(action, SendControl) or not isinstance(action.message, TaskStatusAck):
        return False
    return bool(action.message.taken or action.message.unbound)


def _may_wait(action: Action) -> bool:
    """Return whether an acknowledgment is small, and answers no renewal."""
    assert isinstance(action, SendControl), "acknowledgments are sent"
    ack = action.message
    assert isinstance(ack, TaskStatusAck), "it is one"
    return not ack.renewal and not ack.moving and len(ack.taken) + len(ack.unbound) <= WAITING_LIMIT
