"""Links that are down: told with each vector, so that origins some hops away know why their tasks wait."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, SendVector
from messiahs.core.interface.events import LinkDown, LinkRefused, VectorReceived
from messiahs.core.interface.messages import DenyCode, Reason, SchedRequest, StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.update.missing_links import MISSING_LIMIT
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    ME,
    NEIGHBORS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    message_in,
    only,
    tdv,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

KINDS = {
    CHILD: VectorKind.FOR_PARENTS,
    OTHER_CHILD: VectorKind.FOR_PARENTS,
    PARENT: VectorKind.FOR_CHILDREN,
    SIBLING: VectorKind.FOR_SIBLINGS,
}
GATE, THEIRS = SystemId("gate"), SystemId("theirs")
FAR_LINK = MissingLink(module=GATE, neighbor=THEIRS, text="Connection refused")


def reported(actions: Iterable[Action]) -> dict[SystemId, tuple[MissingLink, ...]]:
    return {action.to: action.message.missing for action in only(actions, SendVector)}


def hear(rig: Rig, system: SystemId, *missing: MissingLink) -> tuple[Action, ...]:
    message = StatusVector(kind=KINDS[system], vector=view(), period_ns=2 * SECOND, age_ns=0, missing=missing)
    return rig.handle(VectorReceived(sender=system, message=message))


def linked(
    module: ModuleFactory, *systems: SystemId, policy: ScriptedPolicy | None = None, apart: tuple[SystemId, ...] = ()
) -> Rig:
    rig = module(policy=policy, apart=apart)
    rig.greet(*(systems or [neighbor.system for neighbor in NEIGHBORS]))
    rig.wait(SECOND)
    return rig


def test_a_link_that_ends_is_told_to_every_other_neighbor_at_once_and_that_it_is_back(module: ModuleFactory) -> None:
    rig = linked(module)
    rig.handle(LinkDown(neighbor=PARENT, text="the connection broke"))
    lost = MissingLink(module=ME, neighbor=PARENT, text="the connection broke")
    assert reported(rig.wait(100 * MILLISECOND)) == dict.fromkeys((CHILD, OTHER_CHILD, SIBLING), (lost,))
    rig.greet(PARENT)
    assert reported(rig.wait(100 * MILLISECOND)) == dict.fromkeys((CHILD, OTHER_CHILD, SIBLING), ())


def test_a_neighbor_that_refuses_the_first_link_is_told_and_a_new_text_waits_for_the_period(
    module: ModuleFactory,
) -> None:
    rig = linked(module, CHILD, SIBLING)
    rig.handle(LinkRefused(neighbor=PARENT, text="no root signed it"))
    refused = MissingLink(module=ME, neighbor=PARENT, text="no root signed it")
    assert reported(rig.wait(100 * MILLISECOND)) == {CHILD: (refused,), SIBLING: (refused,)}
    rig.handle(LinkRefused(neighbor=PARENT, text="it has expired"))
    assert reported(rig.wait(100 * MILLISECOND)) == {}
    assert reported(rig.wait(2 * SECOND))[CHILD] == (replace(refused, text="it has expired"),)


@pytest.mark.parametrize(
    ("reporter", "heard_by"),
    [
        (CHILD, {OTHER_CHILD, PARENT, SIBLING}),
        (PARENT, {CHILD, OTHER_CHILD}),
        (SIBLING, {CHILD, OTHER_CHILD}),
    ],
)
def test_what_a_child_reports_goes_everywhere_and_what_others_report_only_down(
    module: ModuleFactory, reporter: SystemId, heard_by: set[SystemId]
) -> None:
    rig = linked(module)
    hear(rig, reporter, FAR_LINK)
    sent = reported(rig.wait(2 * SECOND))
    assert {system for system, missing in sent.items() if missing} == heard_by
    assert {missing for missing in sent.values() if missing} == {(FAR_LINK,)}


def test_links_that_lead_far_come_first_and_the_rest_is_left_out(module: ModuleFactory) -> None:
    rig = linked(module)
    below = [MissingLink(module=OTHER_CHILD, neighbor=SystemId(f"m{number}")) for number in range(10)]
    hear(rig, OTHER_CHILD, *below)
    hear(rig, PARENT, FAR_LINK)
    rig.handle(LinkDown(neighbor=SIBLING, text=""))
    own = MissingLink(module=ME, neighbor=SIBLING, text="the connection ended")
    sent = reported(rig.wait(2 * SECOND))[CHILD]
    assert sent == (own, FAR_LINK, *below[: MISSING_LIMIT - 2])


def test_a_neighbor_of_another_site_is_told_no_texts_and_no_neighbor_of_links_that_it_knows(
    module: ModuleFactory,
) -> None:
    rig = linked(module, apart=(CHILD,))
    known = MissingLink(module=PARENT, neighbor=CHILD, text="its own link")
    hear(rig, PARENT, FAR_LINK, known, MissingLink(module=ME, neighbor=CHILD, text="long ago"))
    sent = reported(rig.wait(2 * SECOND))
    assert sent[CHILD] == (replace(FAR_LINK, text=""),)
    assert sent[OTHER_CHILD] == (FAR_LINK, known)


def test_a_policy_that_hides_what_is_behind_a_name_tells_of_no_link(module: ModuleFactory) -> None:
    rig = linked(module, policy=ScriptedPolicy(names={PARENT: "campus"}))
    hear(rig, CHILD, FAR_LINK)
    sent = reported(rig.wait(2 * SECOND))
    assert (sent[PARENT], sent[OTHER_CHILD]) == ((), (FAR_LINK,))


def test_a_task_that_waits_or_is_on_its_way_names_the_links_that_are_down_elsewhere(module: ModuleFactory) -> None:
    rig = linked(module)
    hear(rig, PARENT)
    ask = message_in(rig.submit(), SchedRequest).id
    why = Reason(module=GATE, code=DenyCode.UNREACHABLE, text="theirs is not linked: Connection refused")
    hear(rig, PARENT, FAR_LINK)
    assert queries.why_waiting(rig.state, tdv(), requirement="") == (why,)
    rig.hear(PARENT, accept(ask))
    (row,) = rig.state.origin.tasks.values()
    assert queries.why_cut_off(rig.state, row) == (why,)
    hear(rig, PARENT, replace(FAR_LINK, text=""))
    assert queries.why_cut_off(rig.state, row) == (replace(why, text="theirs is not linked"),)
    hear(rig, CHILD, FAR_LINK)
    hear(rig, PARENT)
    assert queries.why_cut_off(rig.state, row) == ()
