"""The cost of queries about much that has ended: the status of a large array, and the history of many tasks."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from messiahs.core.interface.actions import Store
from messiahs.core.interface.ended_members import EndedMembers
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import AttemptStatus, Command, TaskState
from messiahs.core.interface.rows import CountersRow, SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClientKey, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.task_files import Output
from messiahs.daemon.storage.store import RowStore
from tests.benchmarks.federations import LONE, ORIGIN, Measurable, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes

STATUS, MEMBERS = "status", "status --members"
HISTORY, OF_ANOTHER = "history", "history of another user"
_COMMIT_TASKS = 5_000
EARLIER = "an array of an earlier release"
_TASK = f"{ORIGIN}.1"
_EARLIER_TASK = f"{ORIGIN}.2"


def rows() -> tuple[Row, ...]:
    """Return the rows about what has ended."""
    return (
        Row(
            name="status",
            what="the status of an array whose members have all finished, as a command from start to end",
            budgets=(Budget(figure=STATUS, at_least=150, aim=100),),
            enter=_ended_array,
        ),
        Row(
            name="history",
            what="the history of a module with many ended tasks, as a command from start to end",
            budgets=(),
            enter=_ended_tasks,
        ),
    )


@contextmanager
def _ended_array(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        measurable.federation.down()
        _write_rows(measurable, sizes.ended_members)
        measurable.federation.up()

        def contender(name: str, task: str) -> Contender:
            def measure() -> list[Reading]:
                return [
                    Reading(STATUS, "ms", _milliseconds(measurable, "status", task)),
                    Reading(MEMBERS, "ms", _milliseconds(measurable, "status", "--members", "--json", task)),
                ]

            return Contender(name=name, measure=measure, processes=measurable.processes)

        # Arrays that ended under an earlier release have no final counts in their row: every member is read.
        yield (contender(OURS, _TASK), contender(EARLIER, _EARLIER_TASK))


@contextmanager
def _ended_tasks(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        measurable.federation.down()
        _write_tasks(measurable, sizes.ended_members)
        measurable.federation.up()

        def measure() -> list[Reading]:
            return [
                Reading(HISTORY, "ms", _milliseconds(measurable, "history", "--user", "ann")),
                Reading(OF_ANOTHER, "ms", _milliseconds(measurable, "history", "--user", "eve")),
            ]

        yield (Contender(name=OURS, measure=measure, processes=measurable.processes),)


def _milliseconds(measurable: Measurable, *words: str) -> float:
    command = [sys.executable, "-m", "messiahs.cli.main", *words]
    begun_at = time.perf_counter()
    subprocess.run(command, env=measurable.federation.environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun_at) * 1000


def _write_rows(measurable: Measurable, members: int) -> None:
    store = RowStore(measurable.federation.state / measurable.federation.name / ORIGIN / "module.db")
    now = store.newest()
    store.commit([Store(row=CountersRow(submissions=2))], now)
    endings = (EndedMembers(state=TaskState.FINISHED, exit_code=0, count=members),)
    for number, final_counts in ((1, endings), (2, ())):
        submission = TaskId(SystemId(ORIGIN), store.epoch(), number)
        writes = [Store(row=_member(submission._replace(member=member), now)) for member in range(1, members + 1)]
        store.commit([Store(row=_submission(submission, members, final_counts, now)), *writes], now)
    store.close()


def _write_tasks(measurable: Measurable, tasks: int) -> None:
    store = RowStore(measurable.federation.state / measurable.federation.name / ORIGIN / "module.db")
    now = store.newest()
    store.commit([Store(row=CountersRow(submissions=tasks, kept_since=now))], now)
    numbers = range(1, tasks + 1)
    for some in (numbers[first : first + _COMMIT_TASKS] for first in range(0, tasks, _COMMIT_TASKS)):
        ids = [TaskId(SystemId(ORIGIN), store.epoch(), number) for number in some]
        submissions = [Store(row=_submission(task, 0, (), now)) for task in ids]
        store.commit([*submissions, *(Store(row=_member(task, now)) for task in ids)], now)
    store.close()


def _submission(task: TaskId, members: int, endings: tuple[EndedMembers, ...], now: Instant, /) -> SubmissionRow:
    return SubmissionRow(
        id=task,
        key=ClientKey(str(task)),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": ORIGIN, "user": "ann"})),
        requirement="",
        command=Command(argv=("true", "{}")),
        members=members,
        submitted_at=now,
        ended_at=now,
        endings=endings,
    )


def _member(task: TaskId, now: Instant) -> TaskRow:
    outputs = tuple(Output(name=name, size_bytes=0) for name in ("stdout", "stderr"))
    return TaskRow(
        id=task,
        state=TaskState.FINISHED,
        substate=None,
        attempt=1,
        started_at=now,
        ended_at=now,
        executed_on=ORIGIN,
        result=AttemptStatus(
            attempt=AttemptId(task, 1), state=TaskState.FINISHED, exit_code=0, ran_ns=SECOND, outputs=outputs
        ),
        history=tuple(HistoryEntry(at=now, event=event, attempt=1, module=ORIGIN) for event in ("bound", "finished")),
    )
