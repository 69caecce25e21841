"""What modules say and do, one line each, for people: the text of transcripts and of `messiahs trace show`.

`a -> b: …` is a message, `a: …` something that happens at one module. What nobody would want to read is an empty text.
"""

import shlex
from collections.abc import Iterable

from messiahs.config.policies import source_of
from messiahs.core.interface.actions import (
    Action,
    Answer,
    Decision,
    DiscardAttempt,
    DropLink,
    EndAttempt,
    EndFetch,
    ExtendLease,
    FetchOutputs,
    Forget,
    MeasureAttempts,
    Report,
    ResumeAttempt,
    SendControl,
    SendTasks,
    SendVector,
    StartAttempt,
    Store,
    SuspendAttempt,
    TaskEnded,
)
from messiahs.core.interface.events import (
    AttemptEnded,
    AttemptsMeasured,
    AttemptStarted,
    CancelRequested,
    ControlReceived,
    Event,
    InputsMoving,
    LinkDown,
    LinkUp,
    Measured,
    OutputsFailed,
    OutputsHome,
    PolicyChanged,
    RetryRequested,
    RevokeRequested,
    StoreChanged,
    Submitted,
    TransferFailed,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.messages import (
    ClaimEnd,
    ControlMessage,
    Hello,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
    TaskTransfer,
)
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import Row, SubmissionRow, TaskRow
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.recovery import Remains
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Source


def action_text(system: SystemId, action: Action, /) -> str:
    """Tell what a module does."""
    match action:
        case SendControl() | SendTasks() | SendVector():
            return f"{system} -> {action.to}: {message_text(action.message)}"
        case Store():
            said = _stored(action.row)
        case StartAttempt():
            said = f"starts {action.attempt}, at most {action.places} at a time"
        case EndAttempt():
            said = f"ends {action.attempt}: {action.cause}"
        case SuspendAttempt():
            said = f"suspends {action.attempt}"
        case ResumeAttempt():
            said = f"resumes {action.attempt}"
        case DiscardAttempt():
            said = f"discards what {action.attempt} left behind"
        case ExtendLease():
            said = f"extends the lease of {action.claim}"
        case FetchOutputs():
            said = f"fetches what {action.attempt} left behind at {action.executor}"
        case EndFetch():
            said = f"stops fetching what {action.attempt} left behind"
        case TaskEnded():
            said = f"tells that {action.task} has ended"
        case Answer():
            said = f"answers {action.problem or action.task}"
        case Report():
            said = f"reports {action.neighbor} for {action.code}"
        case DropLink():
            said = f"drops the link with {action.neighbor}: {action.text}"
        case Decision():
            said = f"decides {action.what} for {action.task}{f': {action.text}' if action.text else ''}"
        case Forget() | MeasureAttempts():
            said = ""
    return f"{system}: {said}" if said else ""


def event_text(system: SystemId, event: Event | Remains, /) -> str:
    """Tell what happens to a module."""
    match event:
        case ControlReceived() | TransferReceived() | VectorReceived():
            return f"{event.sender} -> {system}: {message_text(event.message)}"
        case Submitted():
            user = event.tdv.description().get("user")
            said = f"{user} submits {max(1, event.members)} of `{shlex.join(event.command.argv)}`"
        case CancelRequested():
            said = f"a user cancels {event.task}"
        case RetryRequested():
            said = f"a user lets {event.submission.id} run again"
        case RevokeRequested():
            how = "kills" if event.kills else "vacates"
            said = f"the administrator {how} {', '.join(map(str, event.attempts))}: {event.text or 'no reason'}"
        case AttemptStarted():
            said = f"{event.attempt} has started"
        case AttemptEnded():
            said = f"{event.attempt} has ended: {_end(event)}"
        case AttemptsMeasured():
            said = f"measures {', '.join(f'{attempt} {used} bytes' for attempt, used in event.memory)}"
        case OutputsHome():
            said = f"what {event.attempt} left behind is home"
        case OutputsFailed():
            said = f"what {event.attempt} left behind could not be fetched: {event.text}"
        case TransferFailed():
            said = f"tasks for {event.claim} may not have arrived: {event.text}"
        case InputsMoving():
            said = f"inputs for {event.claim} are on their way"
        case LinkUp():
            said = f"the link with {event.neighbor} is up"
        case LinkDown():
            said = f"the link with {event.neighbor} is down{f': {event.text}' if event.text else ''}"
        case Measured():
            said = f"measures {', '.join(f'{name} {value}' for name, value in event.sdv.pairs)}"
        case StoreChanged():
            said = f"commits {'work again' if event.has_space else 'fail'}"
        case PolicyChanged():
            said = f"takes up {_policy_text(event.policy)}"
        case Remains():
            said = f"starts with {len(event.rows)} rows, and {len(event.running)} attempts at the executor"
    return f"{system}: {said}"


def message_text(message: ControlMessage | TaskTransfer | StatusVector, /) -> str:
    """Tell what a message says, with its name in front."""
    match message:
        case Hello():
            return f"hello {message.system}"
        case SchedRequest():
            budgets = f"hops {message.hops_left}, asks {message.asks_left}, {message.remaining_ns / SECOND:.3f} s"
            answers = f" for task_request {message.answers.hex()[:8]}" if message.answers is not None else ""
            return f"sched_request #{message.id} from {message.origin}{answers}, count {message.count}; {budgets}"
        case TaskRequest():
            budgets = f"hops {message.hops_left}, asks {message.asks_left}, {message.remaining_ns / SECOND:.3f} s"
            wanted = f"{message.count} of {message.wanting or 'any'}"
            return f"task_request #{message.id} from {message.requester}, wants {wanted}; {budgets}"
        case TaskAccept():
            return f"task_accept #{message.request} {message.count} tasks; asks {message.asks_left}"
        case SchedAccept():
            claim = f"{message.claim} at {message.address}, {message.places} places, window {message.window}"
            return f"sched_accept #{message.request} {claim}; asks {message.asks_left}"
        case SchedDeny() | TaskDeny():
            name = "sched_deny" if isinstance(message, SchedDeny) else "task_deny"
            reasons = "; ".join(map(reason_text, message.reasons))
            return f"{name} #{message.request} {reasons}; asks {message.asks_left}"
        case TaskStatus():
            attempts = ", ".join(f"{each.attempt} {each.substate or each.state}" for each in message.attempts)
            return f"task_status {message.claim} [{attempts}] window {message.window}, renewal {message.renewal}"
        case TaskStatusAck():
            moving = f" moving {_names(message.moving)}" if message.moving else ""
            taken = f"taken {_names(message.taken)} unbound {_names(message.unbound)}"
            return f"task_status_ack {message.claim} {taken}{moving}"
        case TaskStatusQuery():
            return f"task_status_query {message.claim} {_names(message.attempts)}"
        case TaskKill():
            return f"task_kill {message.claim} {_names(message.attempts)}{' for a move' if message.is_move else ''}"
        case TaskRevoke():
            answers = f" for task_request {message.answers.hex()[:8]}" if message.answers is not None else ""
            text = f": {message.text}" if message.text else ""
            return f"task_revoke {message.claim} {_names(message.attempts)}{answers}{text}"
        case ClaimEnd():
            return f"claim_end {message.claim}{' forgotten' if message.is_forgotten else ''}"
        case SystemStatusQuery():
            return "system_status_query"
        case TaskTransfer():
            return f"task_transfer {message.claim} {_names(task.attempt for task in message.tasks)}"
        case StatusVector():
            return f"status_vector {message.kind.name.lower()}, {message.vector.machines} machines"


def reason_text(reason: Reason) -> str:
    """Tell why a module denied, and in brackets why those that it had asked did."""
    hops = f" ({'; '.join(map(reason_text, reason.hops))})" if reason.hops else ""
    text = f" '{reason.text}'" if reason.text else ""
    return f"{reason.module} {reason.code}{text}{hops}"


def _policy_text(policy: Policy) -> str:
    match policy:
        case CompiledPolicy(source=Source()):
            source = source_of(policy)
            return f"the policy {source.file}, SHA-256 {source.sha256}"
        case _:
            return "another policy"


def _stored(row: Row) -> str:
    if isinstance(row, SubmissionRow):
        return f"stores {row.id}, {max(1, row.members)} tasks{' that have ended' if row.ended_at is not None else ''}"
    if not isinstance(row, TaskRow):
        return ""
    if row.ended_at is not None:
        return f"stores {row.id} {row.state}{''.join(f'; {reason_text(reason)}' for reason in row.reasons)}"
    place = f", attempt {row.attempt} bound to {row.claim}" if row.claim is not None else ""
    return f"stores {row.id} {row.substate or row.state}{place}"


def _end(event: AttemptEnded) -> str:
    if event.exit_code is not None:
        return f"exit code {event.exit_code}"
    return f"signal {event.signal}" if event.signal is not None else event.cause


def _names(attempts: Iterable[AttemptId]) -> str:
    return f"[{', '.join(map(str, attempts))}]"
