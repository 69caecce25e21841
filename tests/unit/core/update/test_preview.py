"""What a neighbor would be sent now, under the running policy or another one."""

from copy import deepcopy
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.events import Measured
from messiahs.core.interface.messages import StatusVector
from messiahs.core.model.ids import SystemId
from messiahs.core.model.link_costs import NO_PROBE
from messiahs.core.update.preview import preview
from messiahs.language.compiler.files import parse_policy
from messiahs.trace.format.segments import state_bytes
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, only, sdv, view

RULES = parse_policy(
    "reveal to parent { only $arch; } reveal to siblings nothing; advertise every 9s { set $willingness = 7; }",
    file="x.policy",
)


def _next_period(rig: Rig) -> dict[SystemId, list[StatusVector]]:
    sent: dict[SystemId, list[StatusVector]] = {}
    deadline = rig.module.next_deadline()
    assert deadline is not None
    for action in only(rig.wait(deadline - rig.now), SendVector):
        sent.setdefault(action.to, []).append(action.message)
    return sent


def test_a_preview_is_what_is_sent_at_the_next_period(rig: Rig) -> None:
    rig.measure()
    rig.submit(members=3, requirement="$speed > 5000")
    while len(sent := _next_period(rig)) < 3:
        pass
    for neighbor, messages in sent.items():
        # A probe is of the moment at which a vector is sent.
        unprobed = [replace(each, probe=NO_PROBE) for each in messages]
        assert list(preview(rig.state, neighbor, rig.state.policy, now=rig.now)) == unprobed


def test_a_preview_describes_the_own_machine_as_it_was_measured_last(rig: Rig) -> None:
    rig.measure(load=1)
    rig.handle(Measured(sdv=sdv(load=9_000)))
    (message,) = preview(rig.state, PARENT, rig.state.policy, now=rig.now)
    assert any("load" in dict(each.attributes) for each in message.vector.classes)
    assert message.vector != rig.state.updates.sent[PARENT, message.kind].vector


def test_a_preview_under_another_policy_is_what_that_would_send(rig: Rig) -> None:
    rig.measure()
    rig.see(CHILD, view(gpus=1))
    (to_parent,) = preview(rig.state, PARENT, RULES, now=rig.now)
    (to_sibling,) = preview(rig.state, SIBLING, RULES, now=rig.now)
    (to_child,) = preview(rig.state, CHILD, RULES, now=rig.now)
    assert {name for each in to_parent.vector.classes for name, _ in each.attributes} == {"arch"}
    assert to_sibling.vector.machines == 0
    assert any("willingness" in dict(each.attributes) for each in to_child.vector.classes)
    assert to_child.period_ns == 9_000_000_000


@pytest.mark.parametrize("neighbor", [CHILD, PARENT, SIBLING])
def test_a_preview_changes_nothing(rig: Rig, neighbor: SystemId) -> None:
    rig.measure(load=1)
    rig.handle(Measured(sdv=sdv(load=9_000)))
    before, sums = state_bytes(rig.state), deepcopy(rig.state.updates.up)
    preview(rig.state, neighbor, RULES, now=rig.now)
    assert state_bytes(rig.state) == before
    assert rig.state.updates.up == sums
    assert rig.state.updates.sums is None or rig.state.updates.sums.policy is rig.state.policy
