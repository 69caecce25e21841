"""Another policy takes the place of the running one, and what was agreed under the old one stays."""

from messiahs.core.interface.actions import Action, SendControl, SendVector
from messiahs.core.interface.events import PolicyChanged
from messiahs.core.interface.messages import (
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    VectorKind,
)
from messiahs.core.interface.policies import Refused, Timeouts
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.vectors.vectors import EMPTY
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.open_policy import OpenPolicy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, CLAIM, PARENT, SIBLING, Rig, accept, message_in, only, request, sent, view
from tests.unit.core.scripted_policy import ScriptedPolicy

REFUSING = ScriptedPolicy(verdict=Refused(code=DenyCode.REFUSED_BY_POLICY, rule="no", text="closed"))


def _load(rig: Rig, text: str) -> tuple[Action, ...]:
    return rig.handle(PolicyChanged(policy=parse_policy(text, file="x.policy")))


def _vectors_to(actions: tuple[Action, ...]) -> dict[str, SendVector]:
    return {action.to: action for action in only(actions, SendVector)}


def test_every_neighbor_hears_at_once_what_the_new_policy_tells_it(rig: Rig) -> None:
    rig.measure()
    sends = _vectors_to(_load(rig, "reveal to parent nothing; reveal to siblings { only $arch; }"))
    assert set(sends) == {CHILD, PARENT, SIBLING}
    assert sends[PARENT].message.vector == EMPTY
    assert {name for each in sends[SIBLING].message.vector.classes for name, _ in each.attributes} == {"arch"}


def test_sums_are_recomputed_with_the_keys_and_drops_of_the_new_policy(rig: Rig) -> None:
    rig.see(CHILD, view(gpus=1))
    rig.see(CHILD, view(gpus=2), kind=VectorKind.FOR_PARENTS)
    declared = "attribute $gpus int; combine"
    kept = _vectors_to(_load(rig, f"{declared} {{ $gpus: key; }}"))[PARENT].message.vector
    dropped = _vectors_to(_load(rig, f"{declared} {{ $gpus: drop; }}"))[PARENT].message.vector
    assert "gpus" in dict(kept.classes[0].attributes)
    assert "gpus" not in dict(dropped.classes[0].attributes)


def test_the_own_machine_is_described_as_the_new_policy_says(rig: Rig) -> None:
    rig.measure()
    vector = _vectors_to(_load(rig, "advertise every 2s { set $willingness = 7; }"))[PARENT].message.vector
    assert any("willingness" in dict(each.attributes) for each in vector.classes)


def test_the_next_vectors_are_due_after_the_new_period(rig: Rig) -> None:
    sends = _vectors_to(_load(rig, "advertise every 1min { } timeouts { input 5min; }"))
    assert sends[PARENT].message.period_ns == MINUTE
    assert only(rig.wait(MINUTE - 1), SendVector) == ()
    assert set(_vectors_to(rig.wait(1))) == {CHILD, PARENT, SIBLING}


def test_silence_is_borne_for_as_long_as_the_new_policy_says(rig: Rig) -> None:
    rig.handle(PolicyChanged(policy=OpenPolicy(timeouts=Timeouts(input_ns=20 * SECOND))))
    query = SendControl(to=CHILD, message=SystemStatusQuery())
    assert query not in rig.wait(20 * SECOND - 1)
    assert query in rig.wait(1)


def test_without_an_input_timeout_it_is_the_period_that_the_neighbor_announced(rig: Rig) -> None:
    rig.handle(PolicyChanged(policy=OpenPolicy(timeouts=Timeouts(update_period_ns=MINUTE))))
    assert SendControl(to=CHILD, message=SystemStatusQuery()) in rig.wait(6 * SECOND)


def test_a_neighbor_that_was_queried_is_not_given_more_time(rig: Rig) -> None:
    rig.wait(6 * SECOND)
    rig.handle(PolicyChanged(policy=OpenPolicy(timeouts=Timeouts(input_ns=MINUTE))))
    rig.wait(2 * SECOND)
    assert (CHILD, VectorKind.FOR_PARENTS) not in rig.state.updates.views


def test_the_next_request_is_judged_by_the_new_policy(rig: Rig) -> None:
    rig.handle(PolicyChanged(policy=REFUSING))
    assert message_in(rig.hear(PARENT, request()), SchedDeny).reasons[0].text == "closed"


def test_claims_that_were_granted_or_are_held_stay(rig: Rig) -> None:
    rig.measure()
    rig.hear(PARENT, request())
    granted = dict(rig.state.executor.claims)
    assert len(granted) == 1
    rig.handle(PolicyChanged(policy=REFUSING))
    assert rig.state.executor.claims == granted


def test_what_is_heard_of_a_held_claim_is_waited_for_as_the_new_policy_says(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    assert CLAIM in rig.state.origin.claims
    rig.handle(PolicyChanged(policy=OpenPolicy(timeouts=Timeouts(status_ns=SECOND, input_ns=MINUTE))))
    assert (TimerKind.QUERY, CLAIM, rig.now + SECOND) in set(rig.state.timers.waiting())


def test_tasks_that_wait_get_a_new_round_at_once(rig: Rig) -> None:
    rig.measure(slots=0)
    actions = rig.submit()
    while asks := sent(actions, SchedRequest):
        ((to, ask),) = asks
        actions = rig.hear(to, SchedDeny(request=ask.id, reasons=(), asks_left=9))
    assert sent(_load(rig, "accept from any { limit 1 tasks; }"), SchedRequest)


def test_a_continued_search_is_answered_as_before(rig: Rig) -> None:
    ((to, ask),) = sent(rig.hear(PARENT, request(41)), SchedRequest)
    rig.handle(PolicyChanged(policy=REFUSING))
    assert message_in(rig.hear(to, accept(ask.id)), SchedAccept).request == 41
