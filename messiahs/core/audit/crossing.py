"""Looking at what crosses the links with neighbors under another administration, in the ids of this module."""

from dataclasses import replace

from messiahs.core.audit.folds import note_fold
from messiahs.core.audit.rows import has_audit, is_audited
from messiahs.core.audit.tasks import note_status, note_transfer
from messiahs.core.executor.local_ids import row_of
from messiahs.core.interface.actions import Action, Report, SendControl, SendTasks
from messiahs.core.interface.audit_row import Crossed
from messiahs.core.interface.messages import (
    ControlMessage,
    Reason,
    SchedDeny,
    TaskDeny,
    TaskState,
    TaskStatus,
    TaskTransfer,
)
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.relay.byte_route import may_access, may_pass_through
from messiahs.core.state.module import ModuleState


def note_received(
    state: ModuleState, sender: SystemId, message: ControlMessage | TaskTransfer, now: Instant, /, key: bytes = b""
) -> tuple[Action, ...]:
    """Count a message of a neighbor, unless it is dropped; return what is stored at once.

    Tasks are counted after they were handled, other messages before.
    """
    if not has_audit(state):
        return ()
    if isinstance(message, TaskTransfer):
        # Tasks may come straight from beyond the neighbor.
        neighbor = _brought_by(state, message, sender, key=key)
        if neighbor is None:
            return ()
        return note_transfer(state, neighbor, _taken(state, message), is_outward=False, now=now)
    if not is_audited(state, sender):
        return ()
    match message:
        case TaskStatus():
            return note_status(state, sender, _credible(state, message, sender), is_outward=True, now=now)
        case SchedDeny() | TaskDeny():
            note_fold(state, sender, Crossed.DENIED, code=_code(message.reasons), is_outward=True, now=now)
        case _:
            pass
    return ()


def note_sent(
    state: ModuleState, actions: tuple[Action, ...], shown: tuple[Action, ...], now: Instant, /
) -> tuple[Action, ...]:
    """Count the messages among some actions, and those that were dropped; return what is stored at once.

    `shown` are the same actions as they leave a border, which drops some more.
    """
    if not has_audit(state):
        return ()
    for action in shown:
        if isinstance(action, Report) and is_audited(state, action.neighbor):
            note_fold(state, action.neighbor, Crossed.DROPPED, code=action.code.value, is_outward=False, now=now)
    return tuple(row for action in actions for row in _noted(state, action, now))


def _noted(state: ModuleState, action: Action, now: Instant) -> tuple[Action, ...]:
    match action:
        case SendTasks(to=to, message=transfer):
            neighbor = _toward_executor(state, transfer.claim) or to
            if not is_audited(state, neighbor):
                return ()
            return note_transfer(state, neighbor, _taken(state, transfer), is_outward=True, now=now)
        case SendControl(to=to, message=TaskStatus() as status) if is_audited(state, to):
            return note_status(state, to, status, is_outward=False, now=now)
        case SendControl(to=to, message=SchedDeny() | TaskDeny() as deny) if is_audited(state, to):
            note_fold(state, to, Crossed.DENIED, code=_code(deny.reasons), is_outward=False, now=now)
        case _:
            pass
    return ()


def _brought_by(state: ModuleState, transfer: TaskTransfer, sender: SystemId, *, key: bytes) -> SystemId | None:
    """Return the audited neighbor toward the origin of tasks; None without one, or if their sender has no right."""
    passed, granted = state.hop.passed.get(transfer.claim), state.executor.claims.get(transfer.claim)
    if passed is not None and is_audited(state, passed.toward_origin):
        return passed.toward_origin if may_pass_through(passed, sender, key=key, ticket=transfer.ticket) else None
    if granted is not None and is_audited(state, granted.row.via):
        return granted.row.via if may_access(granted.row, sender, key=key, ticket=transfer.ticket) else None
    return None


def _taken(state: ModuleState, transfer: TaskTransfer) -> TaskTransfer:
    """Return the tasks of a message that pass on as tasks of the claim's origin, or that the own executor took."""
    passed = state.hop.passed.get(transfer.claim)
    if passed is not None:
        tasks = (task for task in transfer.tasks if _is_of(passed, task.attempt))
    elif transfer.claim in state.executor.claims:
        tasks = (task for task in transfer.tasks if _is_taken(state, transfer.claim, task.attempt))
    else:
        return transfer
    return replace(transfer, tasks=tuple(tasks))


def _is_of(passed: PassedClaimRow, attempt: AttemptId) -> bool:
    return passed.origin is None or attempt.task.system == passed.origin


def _is_taken(state: ModuleState, claim: ClaimId, attempt: AttemptId) -> bool:
    row = row_of(state, claim, attempt)
    return row is not None and row.status.state is not TaskState.DENIED


def _toward_executor(state: ModuleState, claim: ClaimId) -> SystemId | None:
    passed, held = state.hop.passed.get(claim), state.origin.claims.get(claim)
    if passed is not None:
        return passed.toward_executor
    return held.row.via if held is not None else None


def _credible(state: ModuleState, status: TaskStatus, sender: SystemId) -> TaskStatus:
    """Return a report without the attempts of which its sender has nothing to say."""
    passed, held = state.hop.passed.get(status.claim), state.origin.claims.get(status.claim)
    if passed is not None and passed.toward_executor == sender:
        return replace(status, attempts=tuple(each for each in status.attempts if _is_of(passed, each.attempt)))
    if held is not None and held.is_from_path(sender):
        return replace(status, attempts=tuple(each for each in status.attempts if each.attempt in held.bound))
    return replace(status, attempts=())


def _code(reasons: tuple[Reason, ...]) -> str:
    return reasons[0].code.value if reasons else ""
