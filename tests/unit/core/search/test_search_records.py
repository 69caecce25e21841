"""What a search for the places of local tasks records: the order, why so, and every answer."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.messages import DenyCode, Reason, SchedDeny, SchedRequest, TaskState
from messiahs.core.interface.policies import Refused
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.search_record import AskedSystem, LeftOut, SearchRecord, bounded
from messiahs.core.model.ids import MessageId, SystemId
from tests.unit.core.rig import CHILD, ME, PARENT, SIBLING, START, TASK, Rig, accept, only, request, sent, tdv, view
from tests.unit.core.scripted_policy import ScriptedPolicy

REFUSED = Reason(module=PARENT, code=DenyCode.REFUSED_BY_POLICY, text="small tasks only")


def asked(actions: tuple[Action, ...]) -> tuple[SystemId, MessageId]:
    ((to, message),) = sent(actions, SchedRequest)
    return to, message.id


def refuse(
    rig: Rig, ask: MessageId, *, by: SystemId = PARENT, reasons: tuple[Reason, ...] = (REFUSED,)
) -> tuple[Action, ...]:
    return rig.hear(by, SchedDeny(request=ask, reasons=reasons, asks_left=60))


def answers(record: SearchRecord | None) -> list[tuple[SystemId, str, int]]:
    assert record is not None
    return [(each.system, each.answer, each.places) for each in record.order]


def test_a_placed_task_has_who_was_asked_before_in_which_order_and_why(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.order = (PARENT, CHILD, SIBLING)
    to, ask = asked(rig.submit())
    assert to == PARENT
    to, ask = asked(refuse(rig, ask))
    rig.hear(to, accept(ask))
    record = rig.state.origin.tasks[TASK].search
    assert answers(record) == [
        (PARENT, "refused_by_policy", 0),
        (CHILD, "granted", 1),
        (SIBLING, "not_asked", 0),
    ]
    assert record is not None
    assert record.order[0].reasons == (REFUSED,)
    assert [each.why for each in record.order] == [
        f"a {relation} that showed room on 1 machine 0.0 s ago; place {place}"
        for place, relation in enumerate(("parent", "child", "sibling"))
    ]
    (claim,) = rig.state.origin.claims.values()
    assert claim.row.search == record


def test_the_own_machine_comes_first_with_its_own_answer(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.order = (PARENT, CHILD, SIBLING)
    rig.measure(slots=1)
    _, ask = asked(rig.submit(tdv=tdv(cpus=2)))
    rig.hear(PARENT, accept(ask))
    record = rig.state.origin.tasks[TASK].search
    assert answers(record)[0] == (ME, "no_class", 0)


def test_a_refusal_of_the_own_policy_has_its_values(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem < 1", text="no", is_final=False)
    policy.why = "$mem is 2"
    rig.submit()
    live = queries.round_of(rig.state, tdv(), requirement="")
    assert live is not None
    assert live.search is not None
    assert live.search.order[0].reasons[0].why == "$mem is 2"


def test_a_neighbor_whose_machines_are_too_small_is_left_out(rig: Rig) -> None:
    rig.see(CHILD, view(slots=1, free_slots=1))
    rig.submit(tdv=tdv(cpus=2))
    live = queries.round_of(rig.state, tdv(cpus=2), requirement="")
    assert live is not None
    assert live.search is not None
    assert live.search.left_out == (LeftOut(system=CHILD, code=DenyCode.NO_CLASS),)


def test_while_a_neighbor_is_asked_the_round_names_it_and_later_when_the_next_one_begins(rig: Rig) -> None:
    to, ask = asked(rig.submit())
    live = queries.round_of(rig.state, tdv(), requirement="")
    assert live is not None
    assert (live.is_searching, live.asking) == (True, to)
    assert (to, "asked", 0) in answers(live.search)
    for _ in range(3):
        actions = refuse(rig, ask, by=to)
        if sent(actions, SchedRequest):
            to, ask = asked(actions)
    ended = queries.round_of(rig.state, tdv(), requirement="")
    assert ended is not None
    assert (ended.is_searching, ended.asking) == (False, None)
    assert ended.next_at is not None
    assert ended.next_at > rig.now
    assert [each[1] for each in answers(ended.search)] == ["refused_by_policy"] * 3


@pytest.mark.parametrize("members", [0, 3])
def test_denied_tasks_keep_the_record_of_their_last_search(rig: Rig, members: int) -> None:
    to, ask = asked(rig.submit(members=members, waits=False))
    actions: tuple[Action, ...] = ()
    for _ in range(3):
        actions = refuse(rig, ask, by=to)
        if sent(actions, SchedRequest):
            to, ask = asked(actions)
    rows = [action.row for action in only(actions, Store)]
    found = [row.search for row in rows if isinstance(row, TaskRow) and row.state is TaskState.DENIED]
    found += [end.search for row in rows if isinstance(row, SubmissionRow) for end in row.untried]
    (record,) = found
    assert [each[1] for each in answers(record)] == ["refused_by_policy"] * 3


def test_a_silent_neighbor_is_recorded_as_one_that_did_not_answer(rig: Rig) -> None:
    to, _ = asked(rig.submit())
    rig.wait(rig.state.policy.timeouts.request_ns * 3 // 4)
    live = queries.round_of(rig.state, tdv(), requirement="")
    assert live is not None
    assert (to, "timed_out", 0) in answers(live.search)


def test_a_search_of_a_neighbor_records_nothing(rig: Rig) -> None:
    rig.hear(CHILD, request())
    (search,) = rig.state.hop.searches.values()
    assert search.record is None


def test_what_a_record_keeps_of_others_is_bounded() -> None:
    deep = REFUSED
    for _ in range(30):
        deep = replace(deep, text="x" * 500, hops=(deep, deep))
    (kept,) = bounded((deep,))
    seen = [kept]
    for each in seen:
        seen.extend(each.hops)
    assert len(seen) <= 8
    assert {len(each.text) for each in seen} == {200}


def test_a_system_beyond_those_that_are_listed_changes_no_record() -> None:
    record = SearchRecord(at=START, order=tuple(AskedSystem(system=SystemId(f"s{n}"), why="") for n in range(16)))
    assert record.granted(SystemId("another"), places=1) == record
