"""Tasks and other bytes of a claim: passed on by a hop, or handled at the end of their way (MESSIAHS 5.3.3).

A hop keeps no tasks: if its leg fails, it answers the sender, and the origin sends again what was not reported.
"""

from dataclasses import replace

from messiahs.core.executor.attempts import on_task_transfer
from messiahs.core.interface.actions import Action, Decision, RefuseTransfer, SendTasks
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.interface.transfer_answers import FINAL, StraightFailed, TransferFailure
from messiahs.core.model.instants import Instant
from messiahs.core.origin import delivery
from messiahs.core.relay.byte_route import deny_transfer, failure_text, give_up_straight, leg_of, may_pass_through
from messiahs.core.state.module import ModuleState
from messiahs.core.state.ways import Bringer


def on_transfer_received(state: ModuleState, event: TransferReceived, now: Instant) -> tuple[Action, ...]:
    """Send tasks on the next leg of their claim, or accept them if the claim was granted here."""
    if event.sender in state.shut_off:
        return deny_transfer(event.message, event.sender, key=event.key)
    passed = state.hop.passed.get(event.message.claim)
    if passed is None:
        return on_task_transfer(state, event.message, sender=event.sender, key=event.key, now=now)
    is_allowed = may_pass_through(passed, event.sender, key=event.key, ticket=event.message.ticket)
    if passed.route is None or passed.is_spliced or not is_allowed:
        return deny_transfer(event.message, event.sender, key=event.key)
    state.ways.bringers[passed.id] = Bringer(system=event.sender, key=event.key)
    leg = leg_of(state, passed.id, passed.route)
    return (SendTasks(to=leg.system, address=leg.address, message=replace(event.message, ticket=leg.ticket)),)


def on_transfer_failed(state: ModuleState, event: TransferFailed, now: Instant) -> tuple[Action, ...]:
    """Take the path instead of a straight leg that fails; tell the sender of tasks that pass through here."""
    passed = state.hop.passed.get(event.claim)
    if passed is None or passed.route is None:
        return delivery.on_transfer_failed(state, event, now)
    leg = leg_of(state, event.claim, passed.route)
    is_on_leg = event.to is None or event.to == leg.system
    given_up: tuple[Action, ...] = ()
    if is_on_leg and event.kind not in (TransferFailure.REFUSED, TransferFailure.BEYOND):
        given_up = _give_up_straight(state, passed, event.text, is_final=event.kind in FINAL, now=now)
    bringer = state.ways.bringers.get(event.claim)
    if bringer is None:
        return given_up
    is_refused = event.kind is TransferFailure.REFUSED
    kind = TransferFailure.REFUSED if is_refused else TransferFailure.BEYOND
    # Another system reads it.
    event = replace(event, text=event.public or event.text)
    text = event.text if is_refused else failure_text(state, event, leg)
    answer = RefuseTransfer(to=bringer.system, key=bringer.key, claim=event.claim, text=text, kind=kind)
    return (*given_up, answer)


def on_straight_failed(state: ModuleState, event: StraightFailed, now: Instant) -> tuple[Action, ...]:
    """Take the path for the bytes of a claim from now on; a claim without another way keeps its leg."""
    passed = state.hop.passed.get(event.claim)
    if passed is None:
        return delivery.on_straight_failed(state, event, now)
    return _give_up_straight(state, passed, event.text, is_final=False, now=now)


def _give_up_straight(
    state: ModuleState, passed: PassedClaimRow, text: str, /, *, is_final: bool, now: Instant
) -> tuple[Action, ...]:
    route = passed.route
    if route is None or not give_up_straight(state, passed.id, route, text=text, is_final=is_final, now=now):
        return ()
    text = f"{route.straight.system} is not reached straight: {state.ways.given_up[passed.id]}"
    return (Decision(what="route", task=str(passed.id), text=text),)
