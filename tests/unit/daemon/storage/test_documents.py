"""Documents of the local API about a task."""

from collections import Counter
from dataclasses import replace

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED
from messiahs.core.interface.messages import AttemptStatus, Command, DenyCode, Reason, Substate, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.usage import Containment, Usage
from messiahs.daemon.storage.documents import array_document, task_document

TASK = TaskId(SystemId("left"), Epoch(1), 17)
SUBMISSION = SubmissionRow(
    id=TASK,
    key=ClientKey("k"),
    tdv=TDV((("cpus", 1), ("user", "ann"))),
    requirement="",
    command=Command(argv=("true",)),
    members=0,
    submitted_at=Instant(0),
)


@pytest.mark.parametrize(("suspended_ns", "started"), [(0, "00:01:30"), (60 * SECOND, "00:00:30")])
def test_a_start_is_as_long_before_the_end_as_the_task_ran_and_was_suspended(suspended_ns: int, started: str) -> None:
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0, ran_ns=10 * SECOND)
    row = TaskRow(id=TASK, state=TaskState.FINISHED, ended_at=Instant(100 * SECOND), result=result)
    document = task_document(replace(row, suspended_ns=suspended_ns), SUBMISSION, reasons=())
    assert document["started_at"] == f"1970-01-01T{started}.000Z"
    assert (document["suspended_since"], document["suspended_s"]) == (None, suspended_ns / SECOND)


@pytest.mark.parametrize(("shown_s", "started"), [(20, "00:00:20"), (95, "00:01:30")])
def test_a_late_report_of_the_end_moves_no_start_that_was_shown(shown_s: int, started: str) -> None:
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0, ran_ns=10 * SECOND)
    shown_at = Instant(shown_s * SECOND)
    row = TaskRow(id=TASK, state=TaskState.FINISHED, started_at=shown_at, ended_at=Instant(100 * SECOND), result=result)
    assert task_document(row, SUBMISSION, reasons=())["started_at"] == f"1970-01-01T{started}.000Z"


@pytest.mark.parametrize(("suspended", "ended"), [(None, "00:00:30"), (0, "00:00:30"), (5 * SECOND, "00:00:35")])
def test_a_late_report_of_the_end_makes_no_run_longer_than_its_machine_measured(
    suspended: int | None, ended: str
) -> None:
    usage = None if suspended is None else Usage(suspended_ns=suspended)
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, ran_ns=10 * SECOND, usage=usage)
    row = TaskRow(id=TASK, state=TaskState.FINISHED, started_at=Instant(20 * SECOND), result=result)
    document = task_document(replace(row, ended_at=Instant(100 * SECOND)), SUBMISSION, reasons=())
    assert document["ended_at"] == f"1970-01-01T{ended}.000Z"
    assert document["suspended_s"] == (suspended or 0) / SECOND


def test_without_a_measured_run_the_end_is_when_it_was_reported() -> None:
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0)
    row = TaskRow(id=TASK, started_at=Instant(20 * SECOND), ended_at=Instant(100 * SECOND), result=result)
    document = task_document(row, SUBMISSION, reasons=())
    assert (document["started_at"][14:19], document["ended_at"][14:19]) == ("00:20", "01:40")


def test_a_task_says_what_its_attempt_used_as_far_as_that_is_known() -> None:
    usage = Usage(cpu_ns=3 * SECOND // 2, peak_memory_bytes=1 << 20, suspended_ns=0)
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0, usage=usage)
    row = TaskRow(id=TASK, state=TaskState.FINISHED, ended_at=Instant(SECOND), result=result)
    assert task_document(row, SUBMISSION, reasons=())["usage"] == {
        "cpu_s": 1.5,
        "peak_memory_bytes": 1 << 20,
        "written_bytes": None,
        "read_bytes": None,
        "suspended_s": 0.0,
    }
    assert task_document(TaskRow(id=TASK), SUBMISSION, reasons=())["usage"] is None


def test_a_task_says_how_its_attempt_was_contained_and_what_that_lacked() -> None:
    contained = Containment(isolation="process", lacks="no control groups")
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0, containment=contained)
    row = TaskRow(id=TASK, state=TaskState.FINISHED, ended_at=Instant(SECOND), result=result)
    document = task_document(row, SUBMISSION, reasons=())
    assert document["containment"] == {"isolation": "process", "lacks": "no control groups"}
    assert task_document(TaskRow(id=TASK), SUBMISSION, reasons=())["containment"] is None


def test_only_the_own_module_says_that_a_dependency_failed_whatever_the_rules_of_others_are_called() -> None:
    own = Reason(module=TASK.system, code=DenyCode.REQUIREMENT_UNMET, rule=DEPENDENCY_FAILED)
    another = replace(own, module=SystemId("right"))
    refused = replace(own, code=DenyCode.REFUSED_BY_POLICY, hops=(own,))
    shown = task_document(TaskRow(id=TASK), SUBMISSION, reasons=(own, another, refused))["reasons"]
    assert [(each["code"], each["rule"]) for each in (*shown, *shown[2]["hops"])] == [
        ("dependency_failed", ""),
        ("requirement_unmet", DEPENDENCY_FAILED),
        ("refused_by_policy", DEPENDENCY_FAILED),
        ("requirement_unmet", DEPENDENCY_FAILED),
    ]


def test_a_task_says_since_when_it_is_suspended() -> None:
    row = TaskRow(id=TASK, started_at=Instant(0), suspended_at=Instant(5 * SECOND), suspended_ns=SECOND // 2)
    document = task_document(row, SUBMISSION, reasons=())
    assert (document["suspended_since"], document["suspended_s"]) == ("1970-01-01T00:00:05.000Z", 0.5)


def test_a_cancelled_task_is_killed_at_once_and_may_run_for_a_while() -> None:
    row = TaskRow(id=TASK, substate=Substate.RUNNING, is_cancelled=True, executed_on="right")
    document = task_document(row, SUBMISSION, reasons=(), may_run_until=Instant(5 * SECOND))
    assert (document["state"], document["substate"]) == ("killed", None)
    assert (document["may_run_on"], document["may_run_until"]) == ("right", "1970-01-01T00:00:05.000Z")
    again = task_document(replace(row, is_wanted_again=True), SUBMISSION, reasons=(), may_run_until=Instant(5 * SECOND))
    assert (again["state"], again["substate"], again["executed_on"]) == ("executing", "queued", "")
    assert again["may_run_on"] == "right"


@pytest.mark.parametrize(("state", "shown"), [(TaskState.FINISHED, 0), (TaskState.KILLED, None)])
def test_a_killed_task_has_no_exit_code_even_if_it_exited_before_it_could_be_killed(
    state: TaskState, shown: int | None
) -> None:
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0)
    row = TaskRow(id=TASK, state=state, ended_at=Instant(SECOND), result=result)
    assert task_document(row, SUBMISSION, reasons=())["exit_code"] == shown


def test_an_overdue_task_is_aborted_at_once_and_may_run_for_a_while() -> None:
    overdue = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.ABORTED, cause=Cause.TIME_LIMIT)
    row = TaskRow(id=TASK, substate=Substate.RUNNING, is_cancelled=True, executed_on="right", result=overdue)
    document = task_document(row, SUBMISSION, reasons=(), may_run_until=Instant(5 * SECOND))
    assert (document["state"], document["substate"], document["cause"]) == ("aborted", None, "time_limit")
    assert (document["may_run_on"], document["may_run_until"]) == ("right", "1970-01-01T00:00:05.000Z")
    counts = array_document(replace(SUBMISSION, members=2), Counter(), [row])["counts"]
    assert counts == {"aborted": 1, "queued": 1}


def test_an_array_counts_its_cancelled_members_as_killed() -> None:
    rows = [
        TaskRow(id=TASK._replace(member=member), substate=Substate.RUNNING, is_cancelled=member > 1)
        for member in (1, 2, 3)
    ]
    counts = array_document(replace(SUBMISSION, members=4), Counter(), rows)["counts"]
    assert counts == {"killed": 2, "queued": 1, "running": 1}
