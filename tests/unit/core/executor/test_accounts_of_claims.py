"""The local account and the network of a claim: what the policy said when it was granted, for all of its tasks."""

from messiahs.core.interface.actions import Decision, StartAttempt, Store
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.policies import Accepted
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    Rig,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    transfer,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def take(rig: Rig, accept: SchedAccept, *, member: int) -> list[str]:
    """Let a task come, and return the accounts of the tasks that start."""
    return [start.account for start in started(rig, accept, member=member)]


def started(rig: Rig, accept: SchedAccept, *, member: int) -> tuple[StartAttempt, ...]:
    message = transfer(accept.claim, accept.ticket, remote(member=member))
    return only(rig.handle(TransferReceived(sender=ORIGIN, message=message)), StartAttempt)


def claims_of(rig: Rig) -> list[GrantedClaimRow]:
    return [claim.row for claim in rig.state.executor.claims.values()]


def test_a_claim_keeps_its_account_whatever_the_policy_says_later(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Accepted(account="physics")
    actions = rig.hear(PARENT, request(count=3))
    accept = message_in(actions, SchedAccept)
    (stored,) = [each.row for each in only(actions, Store) if isinstance(each.row, GrantedClaimRow)]
    assert stored.account == "physics"
    assert any("as account physics" in said.text for said in only(actions, Decision))
    assert take(rig, accept, member=1) == ["physics"]
    for account in ("other", ""):
        policy.verdict = Accepted(account=account)
        assert take(rig, accept, member=2 + len(account)) == ["physics"]


def test_it_keeps_it_over_a_restart_between_its_grant_and_its_first_task(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Accepted(account="physics")
    accept = message_in(rig.hear(PARENT, request()), SchedAccept)
    after = Rig(make_module(), now=rig.now)
    after.resume(Remains(rows=(rig.state.counters, *claims_of(rig))))
    assert take(after, accept, member=1) == ["physics"]


def test_without_an_account_tasks_start_as_usual(rig: Rig) -> None:
    rig.measure()
    assert take(rig, message_in(rig.hear(PARENT, request()), SchedAccept), member=1) == [""]


def test_no_message_has_the_account_neither_to_the_asker_nor_to_who_is_asked_next(
    rig: Rig, policy: ScriptedPolicy
) -> None:
    rig.measure(slots=1)
    rig.greet(CHILD)
    rig.see(CHILD, view())
    policy.verdict = Accepted(account="physics")
    actions = rig.hear(PARENT, request(count=3))
    assert sent(actions, SchedAccept)
    assert sent(actions, SchedRequest)
    assert "physics" not in repr([each for kind in (SchedAccept, SchedRequest) for each in sent(actions, kind)])


def test_a_claim_keeps_its_network_over_other_policies_and_a_restart(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Accepted(network="loopback")
    actions = rig.hear(PARENT, request(count=3))
    accept = message_in(actions, SchedAccept)
    assert any("with network loopback at most" in said.text for said in only(actions, Decision))
    assert "loopback" not in repr(accept)
    policy.verdict = Accepted(network="host")
    assert [start.network for start in started(rig, accept, member=1)] == ["loopback"]
    after = Rig(make_module(), now=rig.now)
    after.resume(Remains(rows=(rig.state.counters, *claims_of(rig))))
    assert [start.network for start in started(after, accept, member=2)] == ["loopback"]
