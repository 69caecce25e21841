"""What arrives at a border, with the ids by which the core knows claims and tasks (MESSIAHS 5.3.3)."""

from collections.abc import Mapping
from dataclasses import replace

from messiahs.core.border.budgets import renewed
from messiahs.core.border.messages_of_claims import attempts_in, with_attempts
from messiahs.core.border.shown_ids import is_shown_by_us, known_attempts, known_claim
from messiahs.core.border.sides import hides_from, is_border
from messiahs.core.interface.actions import Report, ReportCode
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    ClaimMessage,
    ControlMessage,
    SchedAccept,
    SchedRequest,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.state.module import ModuleState

_ClaimMessages = (TaskStatus, TaskStatusAck, TaskStatusQuery, TaskKill, TaskRevoke, ClaimEnd)


def inward(
    state: ModuleState, message: ControlMessage, *, sender: SystemId
) -> tuple[ControlMessage | None, tuple[Report, ...]]:
    """Return a neighbor's message with the ids of the core; None if it is dropped. What does not belong is reported.

    A side may name only what it was shown: a claim by the id that it got, and attempts that were brought in the claim.
    """
    if not is_border(state):
        return message, ()
    if isinstance(message, SchedAccept) and is_shown_by_us(state, message.claim):
        text = f"{message.claim} is an id that this border gives"
        return None, (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=text),)
    if isinstance(message, SchedRequest) and message.near is not None:
        message = replace(message, near=known_claim(state, message.near))
    if isinstance(message, SchedRequest | TaskRequest):
        return renewed(message) if hides_from(state, sender) else message, ()
    return _of_claim(state, message, sender) if isinstance(message, _ClaimMessages) else (message, ())


def inward_transfer(state: ModuleState, event: TransferReceived) -> TransferReceived | Report:
    """Return tasks with the claim's id in the core, or a report on their sender."""
    if not is_border(state):
        return event
    message, known = event.message, known_claim(state, event.message.claim)
    if known is None:
        return Report(neighbor=event.sender, code=ReportCode.NO_SUCH_CLAIM, text=str(message.claim))
    return replace(event, message=replace(message, claim=known))


def _of_claim(
    state: ModuleState, message: ClaimMessage, sender: SystemId
) -> tuple[ClaimMessage | None, tuple[Report, ...]]:
    passed = state.hop.passed.get(message.claim)
    if passed is not None and sender == passed.toward_executor:
        return _from_executor(state, passed, message, sender)
    known = known_claim(state, message.claim)
    if known is None:
        return None, (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(message.claim)),)
    return replace(message, claim=known), ()


def _from_executor(
    state: ModuleState, passed: PassedClaimRow, message: ClaimMessage, sender: SystemId
) -> tuple[ClaimMessage | None, tuple[Report, ...]]:
    if not passed.hides_origin:
        return message, ()
    named = attempts_in(message)
    known = known_attempts(state, passed, named)
    return with_attempts(message, known), _unknown(named, known, sender)


def _unknown(
    named: tuple[AttemptId, ...], known: Mapping[AttemptId, AttemptId], sender: SystemId
) -> tuple[Report, ...]:
    strange = [attempt for attempt in named if attempt not in known]
    if not strange:
        return ()
    text = f"{strange[0]} was not brought in its claim, {len(strange)} in all"
    return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=text),)
