"""Bounds that a policy sets at work: budgets of requests that are passed on, and bars after a revocation."""

from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.policies import Limits, Timeouts
from messiahs.core.model.instants import SECOND
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.rig import ORIGIN, PARENT, Rig, message_in, remote, request, sent, tdv, transfer
from tests.unit.core.scripted_policy import ScriptedPolicy


def test_the_budgets_of_a_request_are_cut_to_those_of_the_policy(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.limits = Limits(hops=3, asks=100)
    ((_, ask),) = sent(rig.hear(PARENT, request(hops_left=32, asks_left=1 << 40)), SchedRequest)
    assert (ask.hops_left, ask.asks_left) == (2, 99)


def test_the_policy_says_how_long_a_shape_of_which_a_task_was_revoked_gets_no_places(
    rig: Rig, policy: ScriptedPolicy
) -> None:
    policy.running = parse_policy('running tasks where $user eq "bad" { kill when 1 = 1; }', file="x.policy").running
    policy.timeouts = Timeouts(bar_ns=5 * SECOND)
    rig.measure()
    claim = message_in(rig.hear(PARENT, request(1, tdv=tdv(user="bad"))), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    rig.wait(0)
    rig.end(AttemptEnded(attempt=remote(), signal=9, cause=Cause.REVOKED))
    asked = [request(number, search=bytes([number]) * 16, tdv=tdv(user="bad")) for number in (11, 12)]
    assert sent(rig.hear(PARENT, asked[0]), SchedAccept) == ()
    rig.wait(5 * SECOND)
    message_in(rig.hear(PARENT, asked[1]), SchedAccept)
