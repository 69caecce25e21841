"""What a border sends: nothing in it names what is hidden from the receiver (MESSIAHS 4, 5.3.3)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from messiahs.core.border.budgets import renewed, unaccounted
from messiahs.core.border.messages_of_claims import attempts_in, with_attempts
from messiahs.core.border.pseudonyms import shown_place, shown_user
from messiahs.core.border.shown_ids import named_attempts, note_machine, shown_attempts
from messiahs.core.border.sides import crosses, hides_from, is_border
from messiahs.core.border.texts import shown_reason, shown_revoke, shown_status, text_of_failure
from messiahs.core.interface.actions import Action, RefuseTransfer, Report, ReportCode, SendControl, SendTasks
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import UsageReport, UsageReportAck
from messiahs.core.interface.limits import HOPS
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
    ClaimMessage,
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.places import digest_of, machine_of
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState


def outward(state: ModuleState, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return actions whose messages have the ids and names that their receivers may see, with the rows for new ids."""
    if not is_border(state):
        return actions
    return tuple(shown for action in actions for shown in _shown(state, action))


def _shown(state: ModuleState, action: Action) -> Iterable[Action]:
    match action:
        case SendControl():
            return _control(state, action)
        case SendTasks():
            return _tasks(state, action)
        case RefuseTransfer():
            return (_refusal(state, action),)
        case _:
            return (action,)


def _control(state: ModuleState, action: SendControl) -> Iterable[Action]:
    message: ControlMessage | None = action.message
    stores: tuple[Action, ...] = ()
    match action.message:
        case SchedRequest() | TaskRequest() as request:
            search = state.hop.asks.get(request.id)
            if search is None:
                text = f"request {request.id} is dropped: it belongs to no search, so its asker may be hidden"
                return (Report(neighbor=action.to, code=ReportCode.OUT_OF_RANGE, text=text),)
            message = _request(state, request, search, to=action.to)
            message = renewed(message) if search.is_hidden else message
        case SchedAccept() as accept:
            message = _accept(state, accept, to=action.to)
            message = unaccounted(message) if hides_from(state, action.to) else message
        case TaskAccept() as accept_of_tasks:
            message = unaccounted(accept_of_tasks) if hides_from(state, action.to) else accept_of_tasks
        case SchedDeny() | TaskDeny() as deny:
            reasons = tuple(shown_reason(each, border=state.system) for each in deny.reasons)
            message = unaccounted(replace(deny, reasons=reasons)) if hides_from(state, action.to) else deny
        case TaskStatus() | TaskStatusAck() | TaskStatusQuery() | TaskKill() | TaskRevoke() | ClaimEnd() as of_claim:
            message, stores = _of_claim(state, of_claim, to=action.to)
        case Leave() as leave:
            # Its text is written by anybody, and may name systems behind this border.
            message = replace(leave, text="") if hides_from(state, action.to) else leave
        case CycleProbe() as probe:
            # How far it has climbed would show how deep the tree behind this border is.
            message = replace(probe, hops_left=HOPS) if hides_from(state, action.to) else probe
        case Hello() | SystemStatusQuery() | Handover() | HandoverDone() | SumsSettled():
            return (action,)
        case UsageReport() | UsageReportAck():
            # They name claims by the ids that their receiver knows (core/ledger/reports.py).
            return (action,)
        case SiblingRequest() | SiblingAssignment():
            # They name systems of one side: this one and its siblings, or its children.
            return (action,)
    return stores if message is None else (*stores, replace(action, message=message))


def _request(
    state: ModuleState, request: SchedRequest | TaskRequest, search: Search, *, to: SystemId
) -> SchedRequest | TaskRequest:
    """Return a request as from this system, if its asker is on the other side."""
    if not crosses(state, search.asker.system, to):
        return request
    if isinstance(request, TaskRequest):
        name = state.policy.disclosure.name_for(state.neighbors[to]) or state.system
        requester = SystemId(name) if search.is_hidden else request.requester
        return replace(request, requester=requester, trust=state.identity.trust)
    shown = replace(request, trust=state.identity.trust, avoids=tuple(_avoided(state, request)))
    return replace(shown, origin=state.system, tdv=_shown_tdv(state, request, to=to)) if search.is_hidden else shown


def _avoided(state: ModuleState, request: SchedRequest) -> Iterator[bytes]:
    """Yield the digests of machines that were granted through here, as their own side knows them."""
    avoids = frozenset(request.avoids)
    if avoids:
        for shown, known in state.border.machines.items():
            if digest_of(shown, request.search) in avoids:
                yield digest_of(known, request.search)


def _shown_tdv(state: ModuleState, request: SchedRequest, *, to: SystemId) -> TDV:
    shown = dict(request.tdv.pairs)
    shown["user"] = shown_user(state, str(shown["user"]), home=request.origin, to=to)
    shown["origin"] = state.system
    return TDV(sorted_pairs(shown))


def _accept(state: ModuleState, accept: SchedAccept, *, to: SystemId) -> SchedAccept:
    """Return an accept with the shown id of its claim; its server is this system already (relay/byte_route.py)."""
    passed = state.hop.passed.get(accept.claim)
    if passed is None or not crosses(state, passed.toward_origin, passed.toward_executor):
        return accept
    machine = machine_of(accept.claim, accept.place)
    if passed.shown is None:
        note_machine(state, shown=machine.mark, known=machine.mark)
        return accept
    place = shown_place(state, machine, to=to)
    note_machine(state, shown=place, known=machine.mark)
    return replace(accept, claim=passed.shown, place=place)


def _of_claim(
    state: ModuleState, message: ClaimMessage, *, to: SystemId
) -> tuple[ClaimMessage | None, tuple[Action, ...]]:
    passed = state.hop.passed.get(message.claim)
    if passed is None:
        # A claim of the own machine or of an own user; its ids name this system, and its texts may name more.
        return (_shown_texts(state, message) if hides_from(state, to) else message), ()
    if to == passed.toward_origin:
        if passed.shown is None:
            return message, ()
        return replace(_shown_texts(state, message), claim=passed.shown), ()
    return _to_executor(state, passed, message)


def _to_executor(
    state: ModuleState, passed: PassedClaimRow, message: ClaimMessage
) -> tuple[ClaimMessage | None, tuple[Action, ...]]:
    if not passed.hides_origin:
        return message, ()
    named = attempts_in(message)
    if isinstance(message, TaskStatusQuery):
        # Its answer passes only if the submission is known here: its row may be lost with that of an older copy.
        shown, stores = shown_attempts(state, passed, named)
    else:
        shown, stores = named_attempts(state, passed, named), ()
    return with_attempts(message, shown), (*stores, *_foreign(passed, named, len(shown)))


def _tasks(state: ModuleState, action: SendTasks) -> Iterable[Action]:
    passed = state.hop.passed.get(action.message.claim)
    if passed is None or not passed.hides_origin:
        return (action,)
    tasks = action.message.tasks
    named = tuple(task.attempt for task in tasks)
    shown, stores = shown_attempts(state, passed, named)
    known = tuple(replace(task, attempt=shown[task.attempt]) for task in tasks if task.attempt in shown)
    sent = (replace(action, message=replace(action.message, tasks=known)),) if known else ()
    return (*stores, *_foreign(passed, named, len(shown)), *sent)


def _foreign(passed: PassedClaimRow, named: tuple[AttemptId, ...], own: int) -> tuple[Report, ...]:
    """Report attempts that are no tasks of a claim's origin."""
    if own == len(set(named)):
        return ()
    text = f"tasks of another origin than {passed.origin} in {passed.id}"
    return (Report(neighbor=passed.toward_origin, code=ReportCode.OUT_OF_RANGE, text=text),)


def _shown_texts(state: ModuleState, message: ClaimMessage) -> ClaimMessage:
    match message:
        case TaskStatus():
            return replace(
                message, attempts=tuple(shown_status(each, border=state.system) for each in message.attempts)
            )
        case TaskRevoke():
            return shown_revoke(message, border=state.system)
        case _:
            return message


def _refusal(state: ModuleState, action: RefuseTransfer) -> RefuseTransfer:
    passed = state.hop.passed.get(action.claim)
    if passed is None or passed.shown is None:
        return action
    return replace(action, claim=passed.shown, text=text_of_failure(action.kind))
