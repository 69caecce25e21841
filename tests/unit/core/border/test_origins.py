"""Whose origins a neighbor at another site may name: none of the inside."""

from dataclasses import replace

import pytest

from messiahs.core.interface.messages import DenyCode, SchedDeny, SchedRequest, TaskDeny, TaskRequest
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from tests.unit.core.border.gate import HOME, gate
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, ME, OTHER_CHILD, PARENT, SIBLING, message_in, request, sent

ABROAD = SystemId("abroad")


@pytest.mark.parametrize("sender", [PARENT, SIBLING])
@pytest.mark.parametrize("origin", [ME, CHILD, OTHER_CHILD])
def test_a_request_from_outside_has_no_origin_inside(sender: SystemId, origin: SystemId) -> None:
    rig = gate()
    actions = rig.hear(sender, request(origin=origin))
    (reason,) = message_in(actions, SchedDeny).reasons
    assert (reason.code, reason.text) == (
        DenyCode.REFUSED_BY_POLICY,
        "its origin is no system of the neighbor's side",
    )
    assert sent(actions, SchedRequest) == ()


@pytest.mark.parametrize(
    ("sender", "origin"), [(PARENT, ABROAD), (PARENT, SIBLING), (CHILD, OTHER_CHILD), (CHILD, HOME)]
)
def test_any_other_origin_is_the_word_of_the_neighbor(sender: SystemId, origin: SystemId) -> None:
    assert sent(gate().hear(sender, request(origin=origin)), SchedRequest)


@pytest.mark.parametrize(("requester", "is_refused"), [(CHILD, True), (ABROAD, False)])
def test_tasks_are_requested_in_no_name_of_the_inside(requester: SystemId, *, is_refused: bool) -> None:
    asking = TaskRequest(
        id=MessageId(5), search=SearchId(b"w" * 16), requester=requester, wanting="", count=3, hops_left=9, asks_left=9,
        remaining_ns=9 * SECOND,
    )  # fmt: skip
    actions = gate().hear(PARENT, asking)
    codes = [reason.code for _, deny in sent(actions, TaskDeny) for reason in deny.reasons]
    assert (DenyCode.REFUSED_BY_POLICY in codes) == is_refused


@pytest.mark.parametrize(
    ("apart", "origin", "is_refused"), [(PARENT, ME, True), (PARENT, CHILD, False), (CHILD, ME, True)]
)
def test_no_neighbor_makes_requests_in_the_name_of_this_system(
    module: ModuleFactory, apart: SystemId, origin: SystemId, *, is_refused: bool
) -> None:
    rig = module(apart=(apart,))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    rig.wait(10_000_000)
    codes = [
        reason.code for _, deny in sent(rig.hear(PARENT, request(origin=origin)), SchedDeny) for reason in deny.reasons
    ]
    assert (DenyCode.REFUSED_BY_POLICY in codes) == is_refused


def test_a_search_of_another_system_that_passed_here_is_made_in_no_other_name(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    rig.hear(PARENT, request())
    forged = rig.hear(CHILD, request(2, origin=ME))
    (reason,) = message_in(forged, SchedDeny).reasons
    assert reason.code is DenyCode.REFUSED_BY_POLICY


def test_a_search_of_this_system_may_come_back_to_it(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    asked = message_in(rig.submit(), SchedRequest)
    returned = replace(asked, id=MessageId(9), hops_left=asked.hops_left - 1)
    codes = [reason.code for _, deny in sent(rig.hear(PARENT, returned), SchedDeny) for reason in deny.reasons]
    assert DenyCode.REFUSED_BY_POLICY not in codes
