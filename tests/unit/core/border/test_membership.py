"""The end of a link at a border, and a drained one: claims keep their shown ids, and no text of the inside leaves."""

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import AnswerTo, DrainRequested, MemberRemoved
from messiahs.core.interface.membership_messages import Leave
from messiahs.core.interface.messages import ClaimEnd, DenyCode, Reason, SchedDeny, SchedRequest
from messiahs.core.model.ids import SystemId
from tests.unit.core.border.gate import INSIDE_CLAIM, gate, leaks, toward
from tests.unit.core.rig import CHILD, FAR, OTHER_CHILD, PARENT, SIBLING, Rig, request, sent

ASKED = AnswerTo(9)


def remove(rig: Rig, system: SystemId, *, is_forced: bool = False) -> tuple[Action, ...]:
    """Let the administrator remove a neighbor, for a reason that names a system inside."""
    text = f"{FAR} has moved"
    return rig.handle(MemberRemoved(answer_to=ASKED, system=system, is_forced=is_forced, text=text))


def test_those_outside_get_no_text_when_their_link_ends_and_those_inside_do() -> None:
    rig = gate()
    assert [leave.text for to, leave in sent(remove(rig, SIBLING), Leave) if to == SIBLING] == ["", ""]
    assert [leave.text for _, leave in sent(remove(rig, CHILD), Leave)] == ["far has moved", "far has moved"]


@pytest.mark.parametrize("is_forced", [False, True])
def test_an_origin_outside_learns_by_its_shown_id_that_a_claim_inside_takes_no_more_tasks(
    into: Rig, *, is_forced: bool
) -> None:
    shown = into.state.hop.passed[INSIDE_CLAIM].shown
    actions = remove(into, CHILD, is_forced=is_forced)
    assert [(to, end.claim, end.is_forgotten) for to, end in sent(actions, ClaimEnd)] == [(PARENT, shown, is_forced)]
    assert leaks(actions) == []


def test_a_drained_system_inside_is_not_named_outside() -> None:
    rig = gate(toward(CHILD))
    reason = Reason(module=FAR, code=DenyCode.DRAINING, text="far gets new disks")
    actions = rig.hear(PARENT, request())
    while asks := sent(actions, SchedRequest):
        ((to, ask),) = asks
        assert to in (CHILD, OTHER_CHILD)
        actions = rig.hear(to, SchedDeny(request=ask.id, reasons=(reason,), asks_left=9))
    denied = sent(actions, SchedDeny)
    assert DenyCode.DRAINING in {each.code for each in (denied[0][1].reasons[0], *denied[0][1].reasons[0].hops)}
    assert leaks(actions) == []


def test_a_drained_border_says_so_itself() -> None:
    rig = gate()
    rig.handle(DrainRequested(answer_to=ASKED, text="new disks"))
    ((_, denied),) = sent(rig.hear(PARENT, request()), SchedDeny)
    assert [(each.module, each.code, each.text) for each in denied.reasons] == [
        ("me", DenyCode.DRAINING, "this module is drained: new disks")
    ]
