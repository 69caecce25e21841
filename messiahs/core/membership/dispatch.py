"""The messages and timeouts of membership, each with the function that handles it (MESSIAHS 6)."""

from typing import Literal, assert_never

from messiahs.core.interface.actions import Action
from messiahs.core.interface.membership_messages import (
    CycleProbe,
    Handover,
    HandoverDone,
    Leave,
    MembershipMessage,
    SiblingAssignment,
    SiblingRequest,
    SumsSettled,
)
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership import assigned, cycles, draining, handover, leaving, siblings
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState

MembershipTimer = Literal[
    TimerKind.LEAVING,
    TimerKind.HANDOVER,
    TimerKind.DRAIN,
    TimerKind.CYCLE,
    TimerKind.SIBLING_HELD,
    TimerKind.SIBLING_ASKED,
    TimerKind.SIBLING_ASSIGNED,
]


def on_message(state: ModuleState, message: MembershipMessage, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Handle a message about the link with its sender."""
    match message:
        case Leave():
            return leaving.on_leave(state, message, sender=sender, now=now)
        case Handover():
            return handover.on_handover(state, message, sender=sender, now=now)
        case HandoverDone():
            return handover.on_handover_done(state, message, sender=sender, now=now)
        case SumsSettled():
            return handover.on_sums_settled(state, message, sender=sender)
        case SiblingRequest():
            return siblings.on_sibling_request(state, message, sender=sender, now=now)
        case SiblingAssignment():
            return assigned.on_sibling_assignment(state, message, sender=sender, now=now)
        case CycleProbe():
            return cycles.on_cycle_probe(state, message, sender=sender, now=now)
        case _:
            assert_never(message)


def on_link_open(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Repeat on a new connection what messages that may be lost have said."""
    said = (
        *leaving.on_link_open(state, neighbor, now),
        *handover.on_link_open(state, neighbor),
        *cycles.on_link_open(state, neighbor, now),
    )
    relations = state.neighbors.get(neighbor)
    is_primary_parent = relations is not None and relations.is_primary_parent
    return (*said, *siblings.own_request(state)) if is_primary_parent else said


def on_timeout(state: ModuleState, kind: MembershipTimer, key: SystemId, /, now: Instant) -> tuple[Action, ...]:
    """Fire a timeout."""
    match kind:
        case TimerKind.LEAVING:
            return leaving.on_leaving_timeout(state, key, now)
        case TimerKind.HANDOVER:
            return handover.on_handover_timeout(state, now)
        case TimerKind.CYCLE:
            return cycles.on_cycle_timeout(state, now)
        case TimerKind.DRAIN:
            return draining.on_drain_timeout(state, now)
        case TimerKind.SIBLING_HELD:
            return siblings.own_request(state)
        case TimerKind.SIBLING_ASKED:
            return siblings.on_asked_timeout(state, key, now)
        case TimerKind.SIBLING_ASSIGNED:
            return assigned.on_assigned_timeout(state, key, now)
        case _:
            assert_never(kind)
