"""Messages of a claim: forwarded by a hop, or handled at the end of their path (MESSIAHS 6.2)."""

from messiahs.core.executor import attempts, claims
from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.messages import (
    ClaimEnd,
    ClaimMessage,
    TaskKill,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin import task_revoke, task_status
from messiahs.core.relay.claim_relay import off_path, pass_on
from messiahs.core.state.module import ModuleState


def on_claim_message(
    state: ModuleState, message: ClaimMessage, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Forward a message, or handle it at the end of its path; report a sender that is not on the path."""
    passed = state.hop.passed.get(message.claim)
    if passed is not None:
        return pass_on(state, passed, message, sender=sender, now=now)
    if isinstance(message, TaskStatus):
        return task_status.on_task_status(state, message, sender=sender, now=now)
    if isinstance(message, TaskRevoke):
        return task_revoke.on_task_revoke(state, message, sender=sender, now=now)
    if isinstance(message, ClaimEnd) and message.claim in state.origin.claims:
        # If both ends are this module: the origin forgets a claim before it sends the final claim_end to the executor.
        return task_status.on_claim_end(state, message, sender=sender, now=now)
    granted = state.executor.claims.get(message.claim)
    if granted is not None and granted.row.via == sender:
        return _at_executor(state, message, now)
    if granted is None and isinstance(message, TaskStatusQuery):
        return _on_query_of_unknown_claim(state, message, sender)
    return _on_end_of_unknown_claim(sender, message) if isinstance(message, ClaimEnd) else off_path(sender, message)


def _on_query_of_unknown_claim(state: ModuleState, query: TaskStatusQuery, sender: SystemId) -> tuple[Action, ...]:
    """Answer as the executor, or as a hop that lost its row: it can no longer forward messages of the claim.

    A hop does not answer for attempts, which may still run: the origin waits until their lease expires.
    """
    if state.is_own(query.claim.executor, query.claim.epoch):
        return attempts.on_query_of_unknown_claim(state, query, sender=sender)
    if query.attempts and query.claim.executor == state.system:
        # It was granted in an earlier life of this state, or by another system with the same name.
        return ()
    if query.attempts or query.claim in state.origin.claims:
        return off_path(sender, query)
    return (SendControl(to=sender, message=ClaimEnd(claim=query.claim, is_forgotten=True)),)


def _on_end_of_unknown_claim(sender: SystemId, end: ClaimEnd) -> tuple[Action, ...]:
    """Send a final claim_end for a claim unknown at both ends, so hops drop it; any other end needs no answer."""
    return (SendControl(to=sender, message=ClaimEnd(claim=end.claim)),) if end.is_forgotten else ()


def _at_executor(state: ModuleState, message: ClaimMessage, now: Instant) -> tuple[Action, ...]:
    match message:
        case TaskStatusAck():
            return attempts.on_task_status_ack(state, message, now)
        case TaskStatusQuery():
            return attempts.on_task_status_query(state, message, now)
        case TaskKill():
            return attempts.on_task_kill(state, message, now)
        case ClaimEnd():
            return claims.on_claim_end(state, message.claim, now)
        case TaskStatus() | TaskRevoke():
            raise AssertionError("this message goes to the origin")
