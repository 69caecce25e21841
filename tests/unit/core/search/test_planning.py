"""Plans: what would become of tasks if they were submitted now, while nothing happens."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from messiahs.core import queries
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, LinkDown, Submitted
from messiahs.core.interface.messages import DenyCode, SchedRequest
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.parts import Location
from messiahs.core.interface.plans import HeldRoom, Plan, PlannedOutcome
from messiahs.core.interface.policies import Limits, Refused
from messiahs.core.interface.search_record import LeftOut
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.location import RoundRobin, WeightedFreeSlots
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.format.segments import state_bytes
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    COMMAND,
    FAR,
    PARENT,
    SIBLING,
    TASK,
    Numbers,
    Rig,
    accept,
    attempt,
    deny,
    sent,
    status,
    statuses,
    tdv,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def submitted(members: int = 0, **said: Any) -> Submitted:  # noqa: ANN401 - any field
    given = {"tdv": tdv(), "requirement": "", "command": COMMAND, "key": ClientKey("planned"), **said}
    return Submitted(answer_to=AnswerTo(1), members=members, **given)


def plan(rig: Rig, members: int = 0, **said: Any) -> Plan:  # noqa: ANN401 - as above
    return plans(rig, members, most=1, **said)[0]


def plans(rig: Rig, members: int, *, most: int, **said: Any) -> tuple[Plan, ...]:  # noqa: ANN401 - as above
    found = queries.plans_of(rig.state, submitted(members, **said), Numbers(), most=most, now=rig.now)
    assert not isinstance(found, str)
    return found


def order(found: Plan) -> list[tuple[SystemId, str]]:
    assert found.search is not None
    return [(each.system, each.answer) for each in found.search.order]


def ask_in(rig: Rig, **said: object) -> SchedRequest:
    ((_, ask),) = sent(rig.submit(**said), SchedRequest)  # type: ignore[arg-type]
    return ask


def test_neighbors_that_show_room_would_be_asked_in_the_order_of_the_policy(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.order = (PARENT, CHILD, SIBLING)
    found = plan(rig)
    assert (found.outcome, found.is_sure, found.is_known) == (PlannedOutcome.START, False, True)
    assert order(found) == [(PARENT, "not_asked"), (CHILD, "not_asked"), (SIBLING, "not_asked")]
    assert found.likely == (PARENT, CHILD, SIBLING)
    assert found.search is not None
    assert found.search.order[0].why == "a parent that showed room on 1 machine 0.0 s ago; place 0"
    ((to, _),) = sent(rig.submit(), SchedRequest)
    assert to == PARENT


def test_a_start_is_not_known_while_no_view_says_whether_a_machine_meets_the_requirement(rig: Rig) -> None:
    found = plan(rig, requirement='$site eq "mars"')
    assert (found.outcome, found.is_sure, found.is_known) == (PlannedOutcome.START, False, False)
    rig.see(SIBLING, view(site="mars"))
    assert plan(rig, requirement='$site eq "mars"').is_known


def test_the_own_machine_grants_what_it_has_and_neighbors_would_be_asked_for_the_rest(rig: Rig) -> None:
    rig.measure(slots=2)
    found = plan(rig, members=3)
    assert (found.outcome, found.is_sure, found.tasks) == (PlannedOutcome.START, True, 3)
    assert found.search is not None
    assert found.search.order[0].places == 2
    assert len(found.search.order) == 4
    assert len(order(plan(rig, members=2))) == 1


def test_a_refusal_of_the_own_policy_has_its_rule_and_values(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem < 1", text="no", is_final=False)
    policy.why = "$mem is 2"
    found = plan(rig)
    assert found.search is not None
    (reason,) = found.search.order[0].reasons
    assert (reason.rule, reason.text, reason.why) == ("require $mem < 1", "no", "$mem is 2")
    assert found.outcome is PlannedOutcome.START


def test_a_task_that_fits_nowhere_would_wait_with_the_reason_of_a_denial(rig: Rig) -> None:
    found = plan(rig, tdv=tdv(cpus=9))
    assert (found.outcome, found.is_sure) == (PlannedOutcome.WAIT, True)
    assert found.search is not None
    assert found.search.left_out[0] == LeftOut(system=CHILD, code=DenyCode.NO_CLASS)
    rig.submit(tdv=tdv(cpus=9))
    assert found.reasons == queries.why_waiting(rig.state, tdv(cpus=9), requirement="")
    assert found.reasons[0].text.startswith("the largest has 4 slots")


def test_a_task_that_does_not_wait_would_be_denied(rig: Rig) -> None:
    assert plan(rig, tdv=tdv(cpus=9), waits=False).outcome is PlannedOutcome.DENY
    assert plan(rig, waits=False).outcome is PlannedOutcome.START


def test_a_neighbor_that_may_only_make_room_would_be_asked_and_leaves_the_outcome_open(rig: Rig) -> None:
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system, view(free_slots=1))
    found = plan(rig, tdv=tdv(cpus=2))
    assert (found.outcome, found.is_sure, found.likely) == (PlannedOutcome.WAIT, False, ())
    assert order(found) == [(CHILD, "not_asked"), (PARENT, "not_asked"), (SIBLING, "not_asked")]


@pytest.mark.parametrize(("limits", "likely"), [(Limits(asks=1), 1), (Limits(hops=0), 0)])
def test_no_more_neighbors_count_than_one_search_asks(
    rig: Rig, policy: ScriptedPolicy, limits: Limits, likely: int
) -> None:
    policy.limits = limits
    found = plan(rig)
    assert (found.asks, len(found.likely)) == (likely, likely)
    assert (found.outcome is PlannedOutcome.START) == bool(likely)


def test_tasks_of_the_same_description_that_wait_are_ahead(rig: Rig) -> None:
    rig.submit(members=2, tdv=tdv(cpus=3))
    found = plan(rig, tdv=tdv(cpus=3))
    assert (found.outcome, found.ahead) == (PlannedOutcome.WAIT, 2)
    rig.measure(slots=9)
    assert plan(rig, tdv=tdv(cpus=3)).outcome is PlannedOutcome.START
    assert plan(rig, tdv=tdv(cpus=1)).ahead == 0


def test_a_claim_that_is_held_takes_tasks_without_a_search(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.order = (CHILD, SIBLING, PARENT)
    ask = ask_in(rig, members=2)
    rig.hear(CHILD, accept(ask.id, places=2))
    rig.hear(CHILD, statuses(status(attempt(member=1)), window=4))
    rig.handle(OutputsHome(attempt=attempt(member=1)))
    found = plan(rig, members=1)
    assert (found.outcome, found.is_sure, found.search) == (PlannedOutcome.START, True, None)
    assert found.held == (HeldRoom(system=FAR, tasks=1),)


def test_tasks_that_depend_on_others_would_wait_or_be_denied(rig: Rig) -> None:
    rig.submit(tdv=tdv(cpus=9))
    on = Dependency(on=TASK, when=When.OK.value)
    found = plan(rig, after=(Predecessor(dependency=on),), waits=False)
    assert (found.outcome, found.awaited, found.search) == (PlannedOutcome.WAIT, (on,), None)
    other = replace(on, on=TASK._replace(number=2))
    failed = plan(rig, after=(Predecessor(dependency=other, is_good=False, how="exit code 1"),))
    assert failed.outcome is PlannedOutcome.DENY
    assert failed.reasons[0].text == "me.2 did not end with exit code 0 (exit code 1)"
    assert plan(rig, after=(Predecessor(dependency=other, is_good=True),)).outcome is PlannedOutcome.START


def test_only_members_whose_turn_it_is_look_for_places(rig: Rig) -> None:
    assert plan(rig, members=9, at_once=2).tasks == 2
    each = plan(rig, members=3, items=("1", "1", "2"), tdv=tdv(mem="{}"))
    assert (each.tasks, each.descriptions, dict(each.tdv.pairs)["mem"]) == (2, 2, 1)


def test_each_description_has_a_plan_up_to_a_limit(rig: Rig) -> None:
    items = ("1", "9", "1", str(2**60))
    found = plans(rig, members=4, most=3, items=items, tdv=tdv(mem="{}"))
    assert [(each.tdv.description()["mem"], each.tasks, each.outcome.value) for each in found] == [
        (1, 2, "start"),
        (9, 1, "start"),
        (2**60, 1, "wait"),
    ]
    assert plans(rig, members=4, most=2, items=items, tdv=tdv(mem="{}")) == found[:2]
    assert {each.descriptions for each in found} == {3}


def test_the_planned_tasks_wait_for_the_policy_as_real_ones_do(module: ModuleFactory) -> None:
    rig = module(policy=parse_policy("accept from users { require $here.waiting < 3; }", file="x"))
    rig.measure()
    assert plan(rig, members=2).outcome is PlannedOutcome.START
    assert plan(rig, members=3).outcome is PlannedOutcome.WAIT


def test_a_link_that_is_down_is_among_the_reasons(rig: Rig) -> None:
    for system in (CHILD, SIBLING, PARENT):
        rig.handle(LinkDown(neighbor=system))
    found = plan(rig)
    assert found.outcome is PlannedOutcome.WAIT
    assert {reason.module for reason in found.reasons if reason.code is DenyCode.UNREACHABLE} >= {CHILD, PARENT}


def test_after_a_failed_start_here_the_task_would_wait_for_the_end_of_the_pause(module: ModuleFactory) -> None:
    rig = module()
    rig.measure(slots=1)
    rig.submit()
    rig.end(AttemptEnded(attempt=attempt(), cause=Cause.SPAWN_FAILED))
    found = plan(rig)
    assert (found.outcome, found.search) == (PlannedOutcome.WAIT, None)
    assert "could not be started" in found.reasons[0].text


@pytest.mark.parametrize("location", [RoundRobin(), WeightedFreeSlots()])
def test_planning_changes_nothing(module: ModuleFactory, location: Location) -> None:
    rig = module(policy=OpenPolicy(location=location))
    rig.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system)
    rig.submit(members=3)
    before, drawn = state_bytes(rig.state), deepcopy(rig.state.randomness)
    parts, tally = deepcopy(rig.state.parts), rig.state.request_tally.counts(rig.now)
    first = plan(rig, members=2)
    assert plan(rig, members=2) == first
    assert state_bytes(rig.state) == before
    assert (rig.state.parts, rig.state.request_tally.counts(rig.now)) == (parts, tally)
    assert rig.state.randomness.bits(64) == drawn.bits(64)


def test_what_a_submit_would_refuse_a_plan_refuses_with_the_same_words(rig: Rig) -> None:
    event = submitted(requirement="$os > 1")
    text = queries.plans_of(rig.state, event, Numbers(), most=1, now=rig.now)
    assert isinstance(text, str)
    assert text.startswith("the requirement can never be true")


def test_a_denial_of_the_last_search_does_not_change_the_order(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.order = (CHILD, SIBLING, PARENT)
    before = order(plan(rig))
    ask = ask_in(rig)
    rig.hear(CHILD, deny(ask.id))
    assert order(plan(rig)) == before
