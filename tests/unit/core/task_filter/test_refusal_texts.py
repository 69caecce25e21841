"""What a refusal says to whom: neighbors see the text of a rule, the own people the rule and the values found."""

from messiahs.core.interface.actions import Decision
from messiahs.core.interface.messages import DenyCode, Reason, SchedDeny
from messiahs.core.interface.policies import Refused
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import ME, SIBLING, Rig, message_in, only, request
from tests.unit.core.scripted_policy import ScriptedPolicy


def test_the_reasons_of_a_refusal_are_logged_locally_and_not_sent(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem <= 8GiB", text="too large")
    policy.why = "$mem <= 8GiB is false ($mem is 9GiB)"
    actions = rig.hear(SIBLING, request())
    assert message_in(actions, SchedDeny).reasons == (
        Reason(module=ME, code=DenyCode.REFUSED_BY_POLICY, text="too large"),
    )
    (decision,) = only(actions, Decision)
    assert decision.text == f"{SIBLING}: refused_by_policy ({policy.why})"


def test_own_users_see_why_their_modules_policy_refused_their_tasks(
    module: ModuleFactory, policy: ScriptedPolicy
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $cpus = 1")
    policy.why = "$cpus = 1 is false ($cpus is 2)"
    rig = module(policy=policy)
    rig.measure()
    actions = rig.submit()
    (shape,) = rig.state.origin.shapes.values()
    assert [(reason.module, reason.why) for reason in shape.reasons] == [(ME, policy.why)]
    assert f"{ME}: refused_by_policy ({policy.why})" in [decision.text for decision in only(actions, Decision)]
