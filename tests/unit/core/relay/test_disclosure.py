"""Under which names a neighbor sees who asks and who denied (MESSIAHS 4: a proxy stands for what is behind it)."""

from dataclasses import replace

import pytest

from messiahs.core.interface.events import PolicyChanged, VectorReceived
from messiahs.core.interface.messages import (
    DenyCode,
    Reason,
    SchedDeny,
    SchedRequest,
    StatusVector,
    TaskRequest,
    VectorKind,
)
from messiahs.core.interface.policies import Refused
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.vectors.vectors import EMPTY
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, FAR, ME, OTHER_CHILD, PARENT, SIBLING, Rig, deny, message_in, request, sent
from tests.unit.core.scripted_policy import ScriptedPolicy

SITE = SystemId("site-7.example.org")
INSIDE = Reason(module=FAR, code=DenyCode.NO_CLASS, text="far has no tape drive")


def _denied(rig: Rig, asker: SystemId, reasons: dict[SystemId, Reason]) -> Reason:
    """Let a neighbor ask, let everybody that is asked deny, and give what it is told."""
    actions = rig.hear(asker, request())
    while asks := sent(actions, SchedRequest):
        ((to, ask),) = asks
        said = reasons.get(to, Reason(module=to, code=DenyCode.NO_CAPACITY))
        actions = rig.hear(to, replace(deny(ask.id), reasons=(said,)))
    (reason,) = message_in(actions, SchedDeny).reasons
    return reason


def _site(module: ModuleFactory, *neighbors: SystemId) -> Rig:
    rig = module(policy=ScriptedPolicy(names=dict.fromkeys(neighbors, SITE)))
    for each in (CHILD, OTHER_CHILD, SIBLING, PARENT):
        rig.greet(each)
        rig.see(each)
    return rig


def test_one_name_stands_for_a_system_and_everything_below_it(module: ModuleFactory) -> None:
    below = Reason(module=CHILD, code=DenyCode.NO_CAPACITY, text="child is busy", hops=(INSIDE,))
    reason = _denied(_site(module, PARENT), PARENT, {CHILD: below})
    assert reason == Reason(
        module=SITE,
        code=DenyCode.NO_CAPACITY,
        hops=(Reason(module=SITE, code=DenyCode.NO_CAPACITY), Reason(module=SITE, code=DenyCode.NO_CLASS)),
    )


def test_what_is_told_does_not_show_how_many_were_asked(module: ModuleFactory) -> None:
    busy = {
        each: Reason(module=each, code=DenyCode.NO_CAPACITY, text=f"{each} is busy") for each in (CHILD, OTHER_CHILD)
    }
    assert _denied(_site(module, PARENT), PARENT, busy).hops == (Reason(module=SITE, code=DenyCode.NO_CAPACITY),)


def test_systems_that_are_not_below_keep_their_names(module: ModuleFactory) -> None:
    reason = _denied(_site(module, CHILD), CHILD, {SIBLING: replace(INSIDE, module=SIBLING)})
    below = Reason(module=SITE, code=DenyCode.NO_CAPACITY)
    above = (replace(INSIDE, module=SIBLING), Reason(module=PARENT, code=DenyCode.NO_CAPACITY))
    assert (reason.module, set(reason.hops)) == (SITE, {below, *above})


def test_a_neighbor_without_a_name_for_us_sees_everything_but_rules(module: ModuleFactory) -> None:
    below = Reason(module=CHILD, code=DenyCode.NO_CAPACITY, hops=(INSIDE,))
    reason = _denied(_site(module, PARENT), SIBLING, {CHILD: below})
    assert reason.module == ME
    assert below in reason.hops


@pytest.mark.parametrize("asker", [CHILD, ME])
def test_who_asks_for_tasks_has_that_name_too(module: ModuleFactory, asker: SystemId) -> None:
    rig = _site(module, PARENT)
    waiting = StatusVector(kind=VectorKind.FOR_CHILDREN, vector=EMPTY, period_ns=60 * SECOND, age_ns=0, waiting=1)
    rig.handle(VectorReceived(sender=PARENT, message=waiting))
    if asker == ME:
        rig.measure()
        rules = 'migrate { ask every 1s when 1 = 1 wanting { }; } reveal to parent { as "site-7.example.org"; }'
        rig.handle(PolicyChanged(policy=parse_policy(rules, file="asking")))
        actions = rig.wait(SECOND)
    else:
        search = SearchId(b"w" * 16)
        asking = TaskRequest(
            id=MessageId(7),
            search=search,
            requester=CHILD,
            wanting="",
            count=1,
            hops_left=4,
            asks_left=4,
            remaining_ns=SECOND,
        )
        actions = rig.hear(CHILD, asking)
    assert message_in(actions, TaskRequest).requester == SITE


def test_the_text_of_the_border_itself_is_sent_and_its_rule_is_not(module: ModuleFactory) -> None:
    rig = _site(module, PARENT)
    refused = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem <= 1GiB", text="too large")
    assert isinstance(rig.state.policy, ScriptedPolicy)
    rig.state.policy.verdict = refused
    assert _denied(rig, PARENT, {}) == Reason(module=SITE, code=DenyCode.REFUSED_BY_POLICY, text="too large")
