"""Outputs as their user may read them: compared with the declaration once, and not while everything else waits."""

import asyncio
import threading
from dataclasses import replace

import pytest

from messiahs.core.interface.messages import AttemptStatus, Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.output_names import Declared
from messiahs.core.model.task_files import Output
from messiahs.daemon.transfer import declared_outputs
from messiahs.daemon.transfer.declared_outputs import DeclaredOutputs

TASK = TaskId(SystemId("left"), Epoch(1), 7)
SUBMISSION = SubmissionRow(
    id=TASK,
    key=ClientKey("k"),
    tdv=TDV(()),
    requirement="",
    command=Command(argv=("true",), outputs=("out/*",)),
    members=0,
    submitted_at=Instant(1),
)


class Comparisons:
    """The threads that compared each path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        noted = self.threads

        class Noting(Declared):
            def covers(self, path: str) -> bool:
                noted.append(threading.get_ident())
                return super().covers(path)

        monkeypatch.setattr(declared_outputs, "Declared", Noting)


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Comparisons:
    return Comparisons(monkeypatch)


def ended(*names: str) -> TaskRow:
    outputs = (Output(name="stdout", size_bytes=1), *(Output(name=f"work/{name}", size_bytes=1) for name in names))
    result = AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.FINISHED, exit_code=0, outputs=outputs)
    return TaskRow(id=TASK, result=result)


def names_of(outputs: tuple[Output, ...]) -> list[str]:
    return [output.name for output in outputs]


def test_what_was_not_declared_is_omitted(comparisons: Comparisons) -> None:
    async def act() -> None:
        outputs = DeclaredOutputs()
        assert names_of(await outputs.of(ended("out/a", "elsewhere"), SUBMISSION)) == ["out/a"]
        assert await outputs.of(TaskRow(id=TASK), SUBMISSION) == ()

    asyncio.run(act())
    assert set(comparisons.threads) == {threading.get_ident()}


def test_many_long_names_are_compared_once_and_beside_other_work(comparisons: Comparisons) -> None:
    many = [f"out/{'x' * 200}{number}" for number in range(100)]

    async def act() -> None:
        outputs, row = DeclaredOutputs(), ended(*many)
        for _ in range(3):
            assert names_of(await outputs.of(row, SUBMISSION)) == many
        assert len(comparisons.threads) == len(many)
        # A task that ran again has left something else.
        assert names_of(await outputs.of(ended(*many[1:]), SUBMISSION)) == many[1:]

    asyncio.run(act())
    assert threading.get_ident() not in comparisons.threads


def test_only_the_last_ones_are_remembered(comparisons: Comparisons) -> None:
    many = [f"out/{'x' * 200}{number}" for number in range(10)]

    async def act() -> None:
        outputs = DeclaredOutputs()
        rows = [replace(ended(*many), id=TASK._replace(number=number)) for number in range(65)]
        for row in (*rows, rows[-1], rows[0]):
            await outputs.of(row, SUBMISSION)

    asyncio.run(act())
    assert len(comparisons.threads) == 66 * len(many)
