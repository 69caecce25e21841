"""The scheduling module as one deterministic state machine (MESSIAHS 6).

A host passes in events and the time, performs the returned actions, and keeps one timer. The same events cause the same
actions on any machine. Messages of a module to itself never leave it.
"""

from collections import deque
from typing import Final, assert_never

from messiahs.core import claim_bytes, claim_messages, link, recovery, reload, replaced_roots, shut_off, view_changes
from messiahs.core.audit.crossing import note_received, note_sent
from messiahs.core.audit.folds import note_splice
from messiahs.core.audit.storing import with_audit
from messiahs.core.border.inward import inward, inward_transfer
from messiahs.core.border.outward import outward
from messiahs.core.executor import attempts, claims, lending, owner_rules, reports, reservations, running_offers
from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, SendTasks
from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.interface.events import (
    ControlReceived,
    DrainRequested,
    Event,
    LeaveRequested,
    LendRequested,
    LinkDown,
    LinkRefused,
    LinkUp,
    Measured,
    MemberAdded,
    MemberRemoved,
    Order,
    PolicyChanged,
    PrimaryParentChanged,
    Request,
    RevokeRequested,
    RootsChanged,
    SettingsApplied,
    ShutOffRequested,
    StoreChanged,
    TransferFailed,
    TransferReceived,
    VectorReceived,
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
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskRequest,
)
from messiahs.core.interface.notifications import Notified
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.spliced_bytes import BytesSpliced, FilesSent, InputsMoving
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.interface.timers import Timeout, TimerKind
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.ledger import reports as ledger_reports
from messiahs.core.membership import dispatch, draining, handover, leaving, relations
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin import (
    delivery,
    dependencies,
    notifications,
    output_fetch,
    placement,
    requests,
    retention,
    rounds,
    submission,
    task_kill,
    task_status,
    time_limits,
)
from messiahs.core.recovery import Remains
from messiahs.core.relay import search_memory
from messiahs.core.relay.links_down import without_link
from messiahs.core.search import routing, sched_request, task_request
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import unreported_failures
from messiahs.core.update import advertising, status_vector
from messiahs.core.update.link_costs import on_files_sent

_TO_A_MODULE: Final = (SendControl, SendTasks)


class SchedulingModule:
    """One module; the host may read its state between calls (see queries.py), and only this class changes it."""

    def __init__(self, state: ModuleState) -> None:
        self.state = state

    def resume(self, remains: Remains, now: Instant) -> tuple[Action, ...]:
        """Start from the remains of an earlier run (empty the first time), and begin to advertise."""
        self.state.timers.set(TimerKind.OUTPUT, self.state.system, now)
        self.state.request_tally.begin_anew(now)
        task_request.watch_asks(self.state, now)
        actions = recovery.resume(self.state, remains, now)
        # Rows name parents, too.
        status_vector.expect_parents(self.state, now)
        return self._settle(actions, now)

    def handle(self, event: Event, now: Instant) -> tuple[Action, ...]:
        """Handle a message or a local fact."""
        return self._settle(_on_event(self.state, event, now), now)

    def expire(self, now: Instant) -> tuple[Action, ...]:
        """Fire the next timeout of those that are due by now, if any; others may still be due.

        One at a time, because each may cost as much as an event, and a host decides what comes between two of them.
        """
        timeout = self.state.timers.take_due(now)
        return () if timeout is None else self._settle(_on_timeout(self.state, timeout, now), now)

    def next_deadline(self) -> Instant | None:
        """Return the instant at which `expire` is due, which may have passed; None if no timeout is set."""
        return self.state.timers.next_deadline()

    def _settle(self, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
        """Deliver messages of the module to itself, in their place among the actions, and complete the step."""
        state = self.state
        actions = _completed(state, actions, now)
        # Reports on claims go before the last message of a link.
        actions = (*actions, *ledger_reports.follow(state, actions, now))
        left = leaving.settle_after(state, actions, now)
        actions = (*actions, *left, *ledger_reports.follow(state, left, now))
        shown = outward(state, actions)
        actions = with_audit(state, (*note_sent(state, actions, shown, now), *shown), now)
        advertising.note_waiting(state, now)
        return (*actions, *unreported_failures(state)) if state.parts.unreported else actions


def _completed(state: ModuleState, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
    """Deliver messages of the module to itself, and decide about tasks that wait for what has happened to others."""
    done: tuple[Action, ...] = ()
    while actions or dependencies.has_changed(state):
        if any(isinstance(action, _TO_A_MODULE) and action.to == state.system for action in actions):
            actions = _delivered(state, actions, now)
        done = (*done, *actions)
        actions = dependencies.settle(state, now)
    return done


def _delivered(state: ModuleState, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
    own = state.system
    settled: list[Action] = []
    pending = deque(actions)
    while pending:
        action = pending.popleft()
        if isinstance(action, SendControl) and action.to == own:
            pending.extendleft(reversed(_on_control(state, own, action.message, now)))
        elif isinstance(action, SendTasks) and action.to == own:
            taken = attempts.on_task_transfer(state, action.message, sender=own, key=b"", now=now)
            pending.extendleft(reversed(taken))
        else:
            settled.append(action)
    return tuple(settled)


def _on_event(state: ModuleState, event: Event, now: Instant) -> tuple[Action, ...]:
    match event:
        case ControlReceived():
            return _on_neighbor(state, event.sender, event.message, now)
        case VectorReceived() if event.sender in state.shut_off or state.membership.is_leaving(event.sender):
            # It was on its way.
            return ()
        case VectorReceived():
            stored = view_changes.on_status_vector(state, event.message, sender=event.sender, now=now)
            return (*stored, *handover.on_marked_vector(state, event.message, sender=event.sender))
        case TransferReceived():
            known = inward_transfer(state, event)
            if isinstance(known, Report):
                return (known,)
            actions = claim_bytes.on_transfer_received(state, known, now)
            return (*note_received(state, known.sender, known.message, now, key=known.key), *actions)
        case TransferFailed():
            return claim_bytes.on_transfer_failed(state, event, now)
        case StraightFailed():
            return claim_bytes.on_straight_failed(state, event, now)
        case AttemptStarted():
            return attempts.on_attempt_started(state, event, now)
        case AttemptEnded():
            return attempts.on_attempt_ended(state, event, now)
        case AttemptsMeasured():
            return owner_rules.on_attempts_measured(state, event, now)
        case OutputsHome():
            return output_fetch.on_outputs_home(state, event, now)
        case OutputsFailed():
            return output_fetch.on_outputs_failed(state, event, now)
        case OutputsTaken():
            return dependencies.on_outputs_taken(state, event, now)
        case _ if isinstance(event, Request):
            return requests.on_request(state, event, now)
        case LinkUp():
            return link.on_link_up(state, event.neighbor, now)
        case LinkDown():
            down = link.on_link_down(state, event.neighbor, now, text=event.text)
            return (*down, *leaving.settle(state, now))
        case LinkRefused():
            return link.on_link_refused(state, event, now)
        case Measured():
            return (*status_vector.on_measured(state, event, now), *owner_rules.on_evaluation(state, now))
        case InputsMoving():
            moving_here = claims.on_inputs_moving(state, event.claim, now)
            return (*moving_here, *task_status.on_inputs_moving(state, event.claim, now))
        case FilesSent():
            return on_files_sent(state, event)
        case BytesSpliced():
            note_splice(state, event, now)
            return ()
        case StoreChanged():
            state.has_space = event.has_space
            # Rounds that a full disk has ended need not wait for the next ones.
            return rounds.search_everywhere(state, now) if event.has_space else ()
        case Notified():
            return notifications.on_notified(state, event, now)
        case _:
            return _on_order(state, event, now)


def _on_order(state: ModuleState, order: Order, now: Instant) -> tuple[Action, ...]:
    """Do what the administrator of the module orders."""
    match order:
        case RevokeRequested():
            return owner_rules.on_revoke_requested(state, order, now)
        case ShutOffRequested():
            return shut_off.on_shut_off_requested(state, order, now)
        case MemberAdded():
            return relations.on_member_added(state, order, now)
        case MemberRemoved():
            return leaving.on_member_removed(state, order, now)
        case LeaveRequested():
            return leaving.on_leave_requested(state, order, now)
        case DrainRequested():
            return draining.on_drain_requested(state, order, now)
        case LendRequested():
            return lending.on_lend_requested(state, order, now)
        case PrimaryParentChanged():
            return handover.on_primary_parent_changed(state, order, now)
        case SettingsApplied():
            return relations.on_settings_applied(state, order, now)
        case PolicyChanged():
            return reload.on_policy_changed(state, order, now)
        case RootsChanged():
            return replaced_roots.on_roots_changed(state, order, now)
        case _:
            assert_never(order)


def _on_neighbor(state: ModuleState, sender: SystemId, message: ControlMessage, now: Instant) -> tuple[Action, ...]:
    """Handle a control message; before the neighbor's hello, all others are refused."""
    if sender in state.shut_off:
        # As for vectors.
        return ()
    greeted = state.updates.links.get(sender)
    if greeted is None:
        return (without_link(state, sender, type(message).__name__),)
    if not greeted and not isinstance(message, Hello):
        # All control messages of a link come over one stream, the hello first: this is no matter of time.
        text = f"{type(message).__name__} before hello"
        return (Report(neighbor=sender, code=ReportCode.NOT_A_NEIGHBOR, text=text),)
    known, reports = inward(state, message, sender=sender)
    if known is None:
        return reports
    return (*reports, *note_received(state, sender, known, now), *_on_control(state, sender, known, now))


def _on_control(state: ModuleState, sender: SystemId, message: ControlMessage, now: Instant, /) -> tuple[Action, ...]:
    match message:
        case Hello():
            was_open = state.updates.links.get(sender)
            opened = link.on_hello(state, message, sender=sender, now=now)
            if was_open:
                return opened
            return (*opened, *dispatch.on_link_open(state, sender, now))
        case (
            Leave()
            | Handover()
            | HandoverDone()
            | SumsSettled()
            | SiblingRequest()
            | SiblingAssignment()
            | CycleProbe()
        ):
            return dispatch.on_message(state, message, sender=sender, now=now)
        case SchedRequest():
            return sched_request.on_sched_request(state, message, sender=sender, now=now)
        case SchedAccept():
            return sched_request.on_sched_accept(state, message, sender=sender, now=now)
        case TaskRequest():
            return task_request.on_task_request(state, message, sender=sender, now=now)
        case TaskAccept():
            return task_request.on_task_accept(state, message, sender=sender, now=now)
        case SchedDeny() | TaskDeny():
            return routing.on_deny(state, message, sender=sender, now=now)
        case UsageReport():
            return ledger_reports.on_usage_report(state, message, sender=sender, now=now)
        case UsageReportAck():
            return ledger_reports.on_usage_report_ack(state, message, sender=sender)
        case SystemStatusQuery():
            return advertising.advertise_to(state, sender, now)
        case _:
            return claim_messages.on_claim_message(state, message, sender=sender, now=now)


def _on_timeout(state: ModuleState, timeout: Timeout, now: Instant, /) -> tuple[Action, ...]:
    match timeout[0]:
        # The most frequent kinds come first.
        case TimerKind.OUTPUT:
            return view_changes.on_output_timeout(state, now)
        case TimerKind.CHANGE:
            return view_changes.on_change_timeout(state, now)
        case TimerKind.ASK:
            return task_request.on_ask_timeout(state, timeout[1], now)
        case TimerKind.SEEN:
            return search_memory.on_seen_timeout(state, timeout[1], now)
        case TimerKind.RENEWAL:
            return reports.on_renewal_timeout(state, timeout[1], now)
        case TimerKind.ROUND:
            return placement.on_round_timeout(state, timeout[1], now)
        case TimerKind.STATUS:
            return reports.on_status_timeout(state, timeout[1], now)
        case TimerKind.INPUT:
            return status_vector.on_input_timeout(state, timeout[1], now)
        case TimerKind.POLL:
            return status_vector.on_poll_timeout(state, timeout[1], now)
        case TimerKind.IDLE:
            return claims.on_idle_timeout(state, timeout[1], now)
        case TimerKind.OWNER_RULES:
            return owner_rules.on_evaluation(state, now)
        case TimerKind.SUM:
            return advertising.on_sum_timeout(state, now)
        case TimerKind.RESERVATION:
            return reservations.on_reservation_timeout(state, now)
        case TimerKind.SEARCH:
            return routing.on_search_timeout(state, timeout[1], now)
        case TimerKind.OFFER:
            return running_offers.on_offer_timeout(state, timeout[1], now)
        case TimerKind.FETCH:
            return output_fetch.on_fetch_timeout(state, timeout[1], now)
        case TimerKind.LIMIT:
            return time_limits.on_limit_timeout(state, timeout[1], now)
        case TimerKind.DEADLINE:
            return submission.on_deadline(state, timeout[1], now)
        case TimerKind.QUERY:
            return task_status.on_query_timeout(state, timeout[1], now)
        case TimerKind.RESEND:
            return delivery.on_resend_timeout(state, timeout[1], now)
        case TimerKind.AVOIDED:
            return delivery.on_avoided_timeout(state, now)
        case TimerKind.AUDIT | TimerKind.LEDGER | TimerKind.RETENTION | TimerKind.LENDING:
            return _on_own_due(state, timeout[0], now)
        case TimerKind.LEAVING | TimerKind.HANDOVER | TimerKind.DRAIN:
            return dispatch.on_timeout(state, timeout[0], timeout[1], now)
        case TimerKind.CYCLE | TimerKind.SIBLING_HELD | TimerKind.SIBLING_ASKED | TimerKind.SIBLING_ASSIGNED:
            return dispatch.on_timeout(state, timeout[0], timeout[1], now)
        case TimerKind.KILL:
            return task_kill.on_kill_timeout(state, timeout[1], now)
        case TimerKind.HELD_LEASE:
            return task_status.on_held_lease_timeout(state, timeout[1], now)
        case TimerKind.GRANTED_LEASE:
            return claims.on_granted_lease_timeout(state, timeout[1], now)
        case _:
            assert_never(timeout)


def _on_own_due(state: ModuleState, kind: TimerKind, now: Instant) -> tuple[Action, ...]:
    """End a position of the owner's dial, forget ended tasks, report what claims have used, or store the audit log."""
    if kind is TimerKind.LENDING:
        return lending.on_lending_timeout(state, now)
    if kind is TimerKind.RETENTION:
        return retention.on_retention_timeout(state, now)
    if kind is TimerKind.LEDGER:
        return ledger_reports.on_ledger_timeout(state, now)
    state.audit.is_due = True
    return ()
