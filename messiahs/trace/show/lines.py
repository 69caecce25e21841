"""Actions, events and messages as text, one line each: used in transcripts and by `messiahs trace show`.

`a -> b: …` is a message, `a: …` an action or event of one module. The text of an uninteresting action is empty.
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
    DropOutputs,
    EndAttempt,
    EndFetch,
    ExtendLease,
    FetchOutputs,
    Forget,
    Link,
    MeasureAttempts,
    Notify,
    Readmit,
    RefuseTransfer,
    Report,
    ResumeAttempt,
    SendControl,
    SendTasks,
    SendVector,
    ShutOff,
    StartAttempt,
    Store,
    SuspendAttempt,
    TakeOutputs,
    TaskEnded,
    Unlink,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.interface.events import (
    CancelRequested,
    CleanRequested,
    ControlReceived,
    DrainRequested,
    Event,
    HandRequested,
    LeaveRequested,
    LendRequested,
    LinkDown,
    LinkRefused,
    LinkUp,
    Measured,
    MemberAdded,
    MemberRemoved,
    PolicyChanged,
    PrimaryParentChanged,
    RetryRequested,
    RevokeRequested,
    RootsChanged,
    SettingsApplied,
    ShutOffRequested,
    StoreChanged,
    Submitted,
    TransferFailed,
    TransferReceived,
    VectorReceived,
    WorkflowSubmitted,
)
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import UsageReport, UsageReportAck
from messiahs.core.interface.membership_messages import (
    CycleProbe,
    Handover,
    HandoverDone,
    Leave,
    SiblingAssignment,
    SiblingRequest,
    SumsSettled,
)
from messiahs.core.interface.messages import (
    ClaimEnd,
    ControlMessage,
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
from messiahs.core.interface.notifications import Notified
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import Row, SubmissionRow, TaskRow
from messiahs.core.interface.spliced_bytes import BytesSpliced, FilesSent, InputsMoving
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.terms import terms_text
from messiahs.core.recovery import Remains
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Source
from messiahs.trace.show.order_texts import order_text


def action_text(system: SystemId, action: Action, /) -> str:
    """Return an action of a module as text."""
    match action:
        case SendControl() | SendTasks() | SendVector():
            return f"{system} -> {action.to}: {message_text(action.message)}"
        case Store():
            text = _stored(action.row)
        case StartAttempt():
            terms = terms_text(action.account, action.network)
            text = f"starts {action.attempt}{terms}, at most {action.places} at a time"
        case EndAttempt():
            text = f"ends {action.attempt}: {action.cause}"
        case RefuseTransfer():
            text = f"answers {action.to} that tasks for {action.claim} were dropped: {action.text}"
        case SuspendAttempt():
            text = f"suspends {action.attempt}"
        case ResumeAttempt():
            text = f"resumes {action.attempt}"
        case DiscardAttempt():
            text = f"discards the outputs of {action.attempt}"
        case ExtendLease():
            text = f"extends the lease of {action.claim}"
        case FetchOutputs():
            text = f"fetches the outputs of {action.attempt} from {action.leg.system}"
        case TakeOutputs():
            text = f"takes outputs of others as inputs of {action.submission}"
        case EndFetch():
            text = f"stops fetching the outputs of {action.attempt}"
        case TaskEnded():
            text = f"announces that {action.task} has ended"
        case Answer():
            text = f"answers {action.problem or action.task}"
        case Report():
            text = f"reports {action.neighbor} for {action.code}"
        case DropLink():
            text = f"drops the link with {action.neighbor}: {action.text}"
        case ShutOff():
            text = f"refuses every connection with {action.neighbor}"
        case Readmit():
            text = f"allows connections with {action.neighbor} again"
        case Link():
            text = f"keeps a link with {action.neighbor.system}"
        case Unlink():
            text = f"ends the link with {action.neighbor}: {action.text or 'no reason'}"
        case Decision():
            text = f"decides {action.what} for {action.task}{f': {action.text}' if action.text else ''}"
        case Notify():
            text = f"notifies {action.notice.user} of the end of {action.notice.id}"
        case DropOutputs():
            text = f"deletes the outputs of {action.submission}"
        case Forget() | MeasureAttempts():
            text = ""
    return f"{system}: {text}" if text else ""


def event_text(system: SystemId, event: Event | Remains, /) -> str:
    """Return an event of a module as text."""
    match event:
        case ControlReceived() | TransferReceived() | VectorReceived():
            return f"{event.sender} -> {system}: {message_text(event.message)}"
        case Submitted() | WorkflowSubmitted():
            text = _submit_text(event)
        case CancelRequested():
            text = f"a user cancels {event.task}"
        case CleanRequested():
            text = f"somebody cleans up {', '.join(map(str, event.tasks))}"
        case RetryRequested():
            text = f"a user retries {event.submission.id}"
        case (
            HandRequested()
            | RevokeRequested()
            | ShutOffRequested()
            | MemberAdded()
            | MemberRemoved()
            | LeaveRequested()
            | DrainRequested()
            | LendRequested()
            | SettingsApplied()
            | PrimaryParentChanged()
            | RootsChanged()
        ):
            text = order_text(event)
        case AttemptStarted():
            text = f"{event.attempt} has started"
        case AttemptEnded():
            text = f"{event.attempt} has ended: {_end(event)}"
        case AttemptsMeasured():
            text = f"measures {', '.join(f'{attempt} {used} bytes' for attempt, used in event.memory)}"
        case OutputsHome():
            text = f"the outputs of {event.attempt} have arrived"
        case OutputsFailed() | OutputsTaken():
            text = _outputs_text(event)
        case TransferFailed():
            text = f"tasks for {event.claim} may not have arrived: {event.text}"
        case StraightFailed():
            text = f"bytes of {event.claim} cannot go straight: {event.text}"
        case InputsMoving() | BytesSpliced() | FilesSent():
            text = _moving_text(event)
        case LinkUp():
            text = f"the link with {event.neighbor} is up"
        case LinkDown():
            text = f"the link with {event.neighbor} is down{f': {event.text}' if event.text else ''}"
        case LinkRefused():
            text = f"there is no link with {event.neighbor}: {event.text}"
        case Measured():
            text = f"measures {', '.join(f'{name} {value}' for name, value in event.sdv.pairs)}"
        case Notified():
            text = f"the end of {event.id} has been notified{f': {event.problem}' if event.problem else ''}"
        case StoreChanged():
            text = f"commits {'work again' if event.has_space else 'fail'}"
        case PolicyChanged():
            text = f"loads {_policy_text(event.policy)}"
        case Remains():
            text = f"starts with {len(event.rows)} rows, and {len(event.running)} attempts at the executor"
    return f"{system}: {text}"


def _moving_text(event: InputsMoving | BytesSpliced | FilesSent) -> str:
    if isinstance(event, FilesSent):
        return f"has sent {event.size_bytes} bytes to {event.to} in {event.duration_ns / SECOND:.3f} s"
    if isinstance(event, InputsMoving):
        return f"inputs for {event.claim} are in transit"
    moved = f"{event.forth_bytes} bytes there and {event.back_bytes} back"
    return f"has passed {moved} unread from {event.toward_origin} to {event.toward_executor}"


def _outputs_text(event: OutputsFailed | OutputsTaken) -> str:
    if isinstance(event, OutputsFailed):
        return f"the outputs of {event.attempt} could not be fetched: {event.text}"
    return event.problem or event.delay or f"outputs of others are inputs of {event.submission}"


def _submit_text(event: Submitted | WorkflowSubmitted) -> str:
    first = event if isinstance(event, Submitted) else event.submissions[0]
    user = first.tdv.description().get("user")
    if isinstance(event, Submitted):
        return f"{user} submits {max(1, event.members)} of `{shlex.join(event.command.argv)}`"
    return f"{user} submits {len(event.submissions)} tasks and arrays together"


def message_text(message: ControlMessage | TaskTransfer | StatusVector, /) -> str:
    """Return a message as text that begins with its name."""
    match message:
        case Hello():
            return f"hello {message.system}"
        case SchedRequest():
            budgets = f"hops {message.hops_left}, asks {message.asks_left}, {message.remaining_ns / SECOND:.3f} s"
            answers = f" for task_request {message.answers.hex()[:8]}" if message.answers is not None else ""
            return f"sched_request #{message.id} from {message.origin}{answers}, count {message.count}; {budgets}"
        case TaskRequest():
            budgets = f"hops {message.hops_left}, asks {message.asks_left}, {message.remaining_ns / SECOND:.3f} s"
            wanted = f"count {message.count} of {message.wanting or 'any'}"
            return f"task_request #{message.id} from {message.requester}, {wanted}; {budgets}"
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
        case Leave():
            return f"leave{' done' if message.is_done else ''}{f': {message.text}' if message.text else ''}"
        case Handover() | HandoverDone():
            return f"handover{'_done' if isinstance(message, HandoverDone) else ''} #{message.number}"
        case SumsSettled():
            return f"sums_settled {' '.join(f'{mark:x}' for mark in message.marks)}"
        case CycleProbe():
            return f"cycle_probe {message.number:x}; hops {message.hops_left}"
        case UsageReport() | UsageReportAck():
            return _usage_report(message)
        case SiblingRequest():
            return _sibling_request(message)
        case SiblingAssignment():
            assigned = _names(each.system for each in message.siblings)
            return f"sibling_assignment {assigned} withdrawn {_names(message.withdrawn)}"
        case TaskTransfer():
            return f"task_transfer {message.claim} {_names(task.attempt for task in message.tasks)}"
        case StatusVector():
            return f"status_vector {message.kind.name.lower()}, {message.vector.machines} machines"


def _usage_report(message: UsageReport | UsageReportAck) -> str:
    if isinstance(message, UsageReportAck):
        return f"usage_report_ack {_names(message.claims)}"
    usages = (f"{each.claim} {each.processor_ns // SECOND} s" for each in message.usages)
    return f"usage_report {', '.join(usages)}"


def _sibling_request(message: SiblingRequest) -> str:
    refused = f", refuses {_names(message.refused)}" if message.refused else ""
    return f"sibling_request from {message.address or 'nowhere'}, has {_names(message.siblings)}{refused}"


def reason_text(reason: Reason) -> str:
    """Return why a module denied, with the reasons of the modules that it had asked in brackets."""
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


def _names(those: Iterable[AttemptId | ClaimId | SystemId]) -> str:
    return f"[{', '.join(map(str, those))}]"
