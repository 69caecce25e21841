"""Forwarding the messages of a claim between origin and executor (MESSIAHS 6.2: the acceptance is forwarded).

A hop knows a claim by the row that it stored when it forwarded the accept, and needs nothing else: the conversation
survives a restart of any module on the path.
"""

from dataclasses import replace

from messiahs.core.border.shown_ids import leave_claim
from messiahs.core.interface.actions import Action, Forget, Report, ReportCode, SendControl
from messiahs.core.interface.messages import ClaimEnd, ClaimMessage, SchedRequest, TaskRevoke
from messiahs.core.interface.rows import PassedClaimRow, RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.relay.byte_route import forget_ways
from messiahs.core.relay.disclosure import as_shown
from messiahs.core.relay.search_memory import remember_way, way_to
from messiahs.core.state.module import ModuleState


def pass_on(
    state: ModuleState, passed: PassedClaimRow, message: ClaimMessage, /, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Forward a message of a claim that passes through this module; report a sender that is not on its path.

    The origin's `claim_end` is the last message of a claim: the hop forgets the claim then.
    """
    if sender == passed.toward_executor:
        if isinstance(message, TaskRevoke) and message.answers is not None:
            remember_way(state, message, sender=sender, now=now)
            message = replace(message, toward=way_to(state, message.answers))
            message = as_shown(state, message, to=passed.toward_origin)
        return (SendControl(to=passed.toward_origin, message=message),)
    if sender != passed.toward_origin:
        return off_path(sender, message)
    forward = SendControl(to=passed.toward_executor, message=message)
    if isinstance(message, ClaimEnd):
        del state.hop.passed[message.claim]
        forget_ways(state, message.claim)
        left = leave_claim(state, passed)
        return (Forget(key=(RowKind.PASSED_CLAIM, message.claim)), *left, forward)
    return (forward,)


def leads_toward(state: ModuleState, request: SchedRequest, system: SystemId, /) -> bool:
    """Return whether a neighbor is the next one on the path of the claim near which a request searches."""
    if request.near is None:
        return False
    passed, held = state.hop.passed.get(request.near), state.origin.claims.get(request.near)
    if passed is not None:
        return passed.toward_executor == system
    return held is not None and held.row.via == system


def off_path(sender: SystemId, message: ClaimMessage) -> tuple[Action, ...]:
    """Report a message about a claim in which its sender has no part."""
    return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(message.claim)),)
