"""A border between a child, behind which claims are granted and tasks submitted, and a parent and a sibling outside."""

from dataclasses import replace

from messiahs.core.border.pseudonyms import shown_submission
from messiahs.core.interface.actions import Action, SendControl, SendTasks
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.trust import Trust
from messiahs.wire.codec import control_to_bytes, transfer_to_bytes
from tests.unit.core.rig import (
    CHILD,
    FAR,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    make_module,
    message_in,
    request,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

OURS = Trust(roots=(b"o" * 16,), vouchers=(b"o" * 16,))
INSIDE_KEY, OUTSIDE_KEY, OWN_KEY = b"i" * 16, b"x" * 16, b"m" * 16
HOME = SystemId("home")
"""An origin behind the child."""
INSIDE_TASK = TaskId(HOME, Epoch(11), 5)
INSIDE_CLAIM = ClaimId(FAR, Epoch(3), 1)
"""Granted behind the child."""
OUTSIDE_CLAIM = ClaimId(SystemId("abroad"), Epoch(4), 9)
HIDDEN = tuple(map(SystemId, (CHILD, OTHER_CHILD, HOME, FAR)))


def gate(policy: Policy | None = None, *, key: bytes = b"k" * 32) -> Rig:
    """Return a border that is linked with all its neighbors, each with room for four tasks."""
    module = make_module(policy=policy, trust=OURS, key=OWN_KEY)
    module.state.identity = replace(module.state.identity, border_key=key)
    rig = Rig(module=module)
    rig.resume()
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    for system in (CHILD, OTHER_CHILD, SIBLING, PARENT):
        rig.see(system)
    rig.wait(10_000_000)
    return rig


def toward(first: SystemId, **more: object) -> ScriptedPolicy:
    """Return a policy that asks one neighbor before all others."""
    others = (each for each in (CHILD, OTHER_CHILD, SIBLING, PARENT) if each != first)
    return ScriptedPolicy(order=(first, *others), **more)  # type: ignore[arg-type]


def asked(rig: Rig, sender: SystemId, number: int = 1, /, **said: object) -> SchedRequest:
    """Let a neighbor ask for places, and return the request as it goes on."""
    return message_in(rig.hear(sender, request(number, search=bytes([number]) * 16, **said)), SchedRequest)


def granted_inside(rig: Rig, number: int = 1, *, claim: ClaimId = INSIDE_CLAIM) -> tuple[SchedAccept, PassedClaimRow]:
    """Let the parent's request be granted behind a child, and return the accept that the parent gets, and the row."""
    actions = rig.hear(PARENT, request(number, search=bytes([number]) * 16))
    ((to, ask),) = ((each.to, each.message) for each in actions if isinstance(each, SendControl))
    assert isinstance(ask, SchedRequest)
    shown = message_in(rig.hear(to, accept(ask.id, claim=claim)), SchedAccept)
    return shown, rig.state.hop.passed[claim]


def granted_outside(rig: Rig, number: int = 1, *, claim: ClaimId = OUTSIDE_CLAIM) -> PassedClaimRow:
    """Let the child's request be granted behind the parent, and return the row."""
    ask = asked(rig, CHILD, number, origin=HOME)
    rig.hear(PARENT, accept(ask.id, claim=claim))
    return rig.state.hop.passed[claim]


def bring(
    rig: Rig, *attempts: AttemptId, claim: ClaimId = OUTSIDE_CLAIM, sender: SystemId = CHILD
) -> tuple[Action, ...]:
    """Let a child send tasks of a claim that was granted outside."""
    ticket = rig.state.hop.passed[claim].ticket
    assert ticket is not None
    return rig.handle(TransferReceived(sender=sender, message=transfer(claim, ticket, *attempts)))


def inside(number: int = 1, *, member: int = 0, task: TaskId = INSIDE_TASK) -> AttemptId:
    """Return an attempt of a task from behind the child."""
    return AttemptId(task._replace(member=member), number)


def shown(rig: Rig, attempt: AttemptId) -> AttemptId:
    """Return the id by which the outside knows an attempt."""
    submission = shown_submission(rig.state, attempt.task.submission)
    return AttemptId(submission._replace(member=attempt.task.member), attempt.number)


def leaks(actions: tuple[Action, ...]) -> list[bytes]:
    """Return the names from inside in the bytes of what is sent to the outside."""
    sent = [
        control_to_bytes((each.message,)) if isinstance(each, SendControl) else transfer_to_bytes(each.message)
        for each in actions
        if isinstance(each, SendControl | SendTasks) and each.to not in HIDDEN
    ]
    assert sent, "nothing was sent to the outside"
    return [name.encode() for name in HIDDEN for body in sent if name.encode() in body]
