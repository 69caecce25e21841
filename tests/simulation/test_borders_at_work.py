"""What passes borders in the life of a task, one scenario for each conversation (MESSIAHS 4, 5.3, 6.2)."""

from collections import Counter

import pytest

from messiahs.core.executor.claims import UNUSED_NS
from messiahs.core.interface.actions import Store
from messiahs.core.interface.events import AnswerTo, CancelRequested, RevokeRequested
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedRequest,
    TaskAccept,
    TaskKill,
    TaskRequest,
    TaskState,
    TaskStatusAck,
)
from messiahs.core.interface.rows import HiddenSubmissionRow, TaskRow
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.core.queries import local_attempts
from tests.simulation.border_world import IN_A_ROW, MEMBERS, SIDE_BY_SIDE, TIMEOUTS, TWO_DEPARTMENTS, World
from tests.unit.core.rig import retry_of

TWO_IN_A_ROW = {"out": "$slots = 3", "in-b1": "$slots = 5"}
"""Origins outside and inside of a border below a border, and what finds the machines on its other side."""
LONG_NS = 5 * TIMEOUTS.lease_ns


def hidden_rows(world: World, gate: str) -> list[HiddenSubmissionRow]:
    """Return every version of the rows with which a border has stored whose tasks it hides."""
    stored = (each.row for system, each in world.actions if system == gate and isinstance(each, Store))
    return [row for row in stored if isinstance(row, HiddenSubmissionRow)]


def submission_of(rows: list[TaskRow]) -> TaskId:
    (submission,) = {row.id.submission for row in rows}
    return submission


def test_the_members_of_an_array_use_several_claims_and_are_one_row_at_the_border() -> None:
    world = World(TWO_DEPARTMENTS)
    world.submit("in-a1", "$slots = 3", members=60)
    rows = world.finish(60)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    assert {world.ran_on(row) for row in rows} == {"in-b1", "in-b2"}
    stored = hidden_rows(world, "gate-a")
    assert {row.id for row in stored} == {submission_of(rows)}
    assert max(len(row.claims) for row in stored) >= 2
    assert hidden_rows(world, "gate-b") == []


@pytest.mark.parametrize(("origin", "requirement"), TWO_IN_A_ROW.items())
def test_leases_are_renewed_across_two_borders_in_a_row(origin: str, requirement: str) -> None:
    world = World(IN_A_ROW, mean_run_ns=LONG_NS)
    world.submit(origin, requirement, members=3)
    rows = world.finish(3)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    assert max(row.result.ran_ns for row in rows if row.result is not None) > TIMEOUTS.lease_ns
    renewed = Counter(
        sender for sender, _, ack in world.sent(TaskStatusAck) if ack.renewal and sender in ("gate-a", "in-gate")
    )
    assert min(renewed[SystemId("gate-a")], renewed[SystemId("in-gate")]) > 3


@pytest.mark.parametrize(("origin", "requirement"), TWO_IN_A_ROW.items())
def test_inputs_pass_two_borders_at_once_while_both_ends_of_the_path_wait_for_them(
    origin: str, requirement: str
) -> None:
    world = World(IN_A_ROW)
    longest_ns = world.federation.conditions.inputs_ns = 10 * TIMEOUTS.lease_ns
    world.submit(origin, requirement, members=0, inputs=(InputFile(name="in", sha256=bytes(32), size_bytes=1 << 40),))
    (row,) = world.finish(1)
    assert (row.state, row.attempt) == (TaskState.FINISHED, 1)
    assert row.started_at is not None
    assert row.bound_at is not None
    assert UNUSED_NS < row.started_at - row.bound_at < longest_ns
    ended = [sender for sender, _, _ in world.sent(ClaimEnd)]
    assert world.ran_on(row) not in ended[: ended.index(SystemId(origin))]


@pytest.mark.parametrize(("origin", "requirement"), TWO_IN_A_ROW.items())
def test_a_kill_reaches_tasks_behind_two_borders(origin: str, requirement: str) -> None:
    world = World(IN_A_ROW, mean_run_ns=100 * LONG_NS)
    world.submit(origin, requirement, members=3)
    world.wait(20)
    (submission,) = {attempt.task.submission for attempt in world.checks.begun}
    world.federation.post(SystemId(origin), CancelRequested(answer_to=AnswerTo(2), task=submission))
    rows = world.finish(3)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.KILLED, 1)}
    named = {
        attempt.task.system
        for sender, _, kill in world.sent(TaskKill)
        if sender in ("gate-a", "in-gate")
        for attempt in kill.attempts
    }
    assert named <= {"out", "gate-a", "in-gate"}


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize(("origin", "requirement"), TWO_IN_A_ROW.items())
def test_the_reason_of_an_administrator_stays_behind_the_border(origin: str, requirement: str, *, kills: bool) -> None:
    world = World(IN_A_ROW, mean_run_ns=LONG_NS)
    world.submit(origin, requirement, members=1)
    world.wait(20)
    (machine,) = world.checks.begun.values()
    text = f"maintenance of {machine}"
    attempts = tuple(local.row.id for local in local_attempts(world.host(machine).module.state))
    world.federation.post(machine, RevokeRequested(answer_to=AnswerTo(2), attempts=attempts, kills=kills, text=text))
    (row,) = world.finish(1)
    ends = {
        entry.event: entry.text for entry in row.history if entry.attempt == 1 and entry.event != "route" and entry.text
    }
    shown = "text withheld by the border gate-a" if origin == "out" else text
    assert ends == {"vacating": shown, "revoked" if kills else "vacated": shown}
    assert (row.state, row.attempt) == (TaskState.FINISHED, 2)


def test_a_retry_runs_behind_the_border_again_under_the_same_id() -> None:
    world = World(TWO_DEPARTMENTS, failing=100)
    world.submit("in-a1", "$slots = 3", members=4)
    failed = world.finish(4)
    assert {(row.state, row.attempt) for row in failed} == {(TaskState.FINISHED, 1)}
    assert all(row.result is not None and row.result.exit_code for row in failed)
    (first,) = {row.shown for row in hidden_rows(world, "gate-a")}
    host, submission = world.host("in-a1"), submission_of(failed)
    row = host.disk.submission(submission)
    assert row is not None
    world.checks.expect_retry(submission)
    world.federation.ended.clear()
    host.post(retry_of(row, host.disk.members(row)))
    again = world.finish(4)
    assert {(row.state, row.attempt, row.executed_on) for row in again} == {(TaskState.FINISHED, 2, "gate-b")}
    assert {row.shown for row in hidden_rows(world, "gate-a")} == {first}


def test_a_machine_behind_a_border_asks_for_tasks_and_gets_those_that_run_behind_another() -> None:
    asking = "migrate { ask every 5s when $here.tasks = 0 wanting { $cpus >= 1 }; offer when $task.ran > 1000h; }"
    offering = "migrate { offer when $task.ran < 10min; }"
    world = World(TWO_DEPARTMENTS, policies={"in-b1": asking, "in-a1": offering}, mean_run_ns=1000 * SECOND)
    world.submit("in-a1", "", members=1)
    world.wait(60)
    ran_on = {attempt.number: machine for attempt, machine in world.checks.begun.items()}
    assert ran_on == {1: "in-a1", 2: "in-b1"}
    requesters = {(sender, request.requester) for sender, _, request in world.sent(TaskRequest) if sender != "in-b1"}
    assert ("gate-b", "gate-b") in requesters
    assert not [requester for sender, requester in requesters if sender in ("gate-b", "top") and requester == "in-b1"]
    assert ("gate-b", "in-b1") in {(sender, to) for sender, to, _ in world.sent(TaskAccept)}
    answering = [request for sender, _, request in world.sent(SchedRequest) if sender == "gate-a" and request.answers]
    assert {request.origin for request in answering} == {"gate-a"}


@pytest.mark.parametrize("gate", ["gate-a", "in-gate"])
@pytest.mark.parametrize("loss", ["killed", "wiped", "restored"])
@pytest.mark.parametrize(("origin", "requirement"), TWO_IN_A_ROW.items())
def test_a_border_in_a_row_that_loses_something_doubles_no_attempt_and_loses_no_task(
    gate: str, loss: str, origin: str, requirement: str
) -> None:
    world = World(IN_A_ROW, mean_run_ns=5 * SECOND)
    world.checks.is_forgetful = loss == "wiped"
    world.submit(origin, requirement)
    host = world.host(gate)
    for _ in range(3):
        world.wait(4)
        host.crash()
        if loss == "wiped":
            host.wipe()
        elif loss == "restored":
            host.restore_database()
        world.wait(2)
        host.start()
    rows = world.finish(MEMBERS)
    assert {row.state for row in rows} == {TaskState.FINISHED}
    if loss == "killed":
        assert {row.attempt for row in rows} == {1}


@pytest.mark.parametrize("loss", ["killed", "wiped", "restored"])
def test_two_borders_side_by_side_that_fail_in_turn_double_no_attempt_and_lose_no_task(loss: str) -> None:
    world = World(SIDE_BY_SIDE, mean_run_ns=5 * SECOND)
    world.checks.is_forgetful = loss == "wiped"
    world.submit("in-a1", "$slots = 5")
    world.submit("out", "$slots = 2")
    for gate in ("gate-a", "gate-b", "gate-a"):
        world.wait(4)
        host = world.host(gate)
        host.crash()
        if loss == "wiped":
            host.wipe()
        elif loss == "restored":
            host.restore_database()
        world.wait(12)
        host.start()
    rows = world.finish(2 * MEMBERS)
    assert {row.state for row in rows} == {TaskState.FINISHED}


@pytest.mark.parametrize("gate", ["gate-a", "gate-b"])
def test_tasks_wait_while_the_disk_of_a_border_is_full_and_none_is_lost(gate: str) -> None:
    world = World(TWO_DEPARTMENTS, mean_run_ns=5 * SECOND)
    world.submit("in-a1", "$slots = 3", members=40)
    world.wait(4)
    world.host(gate).disk.is_full = True
    world.wait(60)
    assert len(world.federation.ended) < 40
    world.host(gate).disk.is_full = False
    rows = world.finish(40)
    assert {row.state for row in rows} == {TaskState.FINISHED}
