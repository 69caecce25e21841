"""What an origin takes home of what an executor reports: what the task declared, within what it may bring."""

from dataclasses import replace
from typing import SupportsIndex

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, EndFetch, FetchOutputs, Report, ReportCode, Store, TaskEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested
from messiahs.core.interface.messages import Command, SchedRequest, TaskKill, TaskState, TaskStatusAck
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import SECOND
from messiahs.core.model.output_names import NAMES_LIMIT_BYTES, Declared
from messiahs.core.model.task_files import Output
from messiahs.core.origin import reported_outputs
from messiahs.core.origin.delays import Delay, Delayed
from messiahs.core.origin.reported_outputs import LEAST_LIMIT_BYTES, LIMIT_BYTES, accepted
from tests.unit.core.rig import (
    CHILD,
    GIB,
    LEASE_NS,
    LEG,
    TASK,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    sent,
    status,
    statuses,
    tdv,
)

STDOUT, STDERR = Output(name="stdout", size_bytes=5), Output(name="stderr", size_bytes=7)


def bind(rig: Rig, *declared: str, members: int = 0, **more: object) -> None:
    """Submit one task that declares outputs, and let it be bound to a claim that the child brings."""
    command = Command(argv=("true",), outputs=declared)
    ((_, ask),) = sent(rig.submit(members, command=command, **more), SchedRequest)
    rig.hear(CHILD, accept(ask.id))


def ended(rig: Rig, *outputs: Output, state: TaskState = TaskState.FINISHED, **said: object) -> tuple[Action, ...]:
    return rig.hear(CHILD, statuses(status(attempt(), state, outputs=outputs, **said)))


def fetched(actions: tuple[Action, ...]) -> list[str]:
    return [output.name for fetch in only(actions, FetchOutputs) for output in fetch.outputs]


def final(actions: tuple[Action, ...]) -> TaskRow:
    row = [action.row for action in only(actions, Store) if isinstance(action.row, TaskRow)][-1]
    assert row.ended_at is not None
    return row


def work(name: str, size_bytes: int = 1) -> Output:
    return Output(name=f"work/{name}", size_bytes=size_bytes)


@pytest.mark.parametrize(
    "name",
    [
        "work/.bashrc",
        "work/.ssh/authorized_keys",
        "work/out.txt.sh",
        "work/out.tx",
        "work/folder.sh",
        "work/folder/../.bashrc",
        "work/../out.txt",
        "work//out.txt",
        "work/out.txt/",
        "work/",
        "out.txt",
        "/work/out.txt",
        "WORK/out.txt",
        "stdout/x",
        "module.db",
        "",
    ],
)
def test_what_was_not_declared_is_not_fetched_and_its_executor_is_reported(rig: Rig, name: str) -> None:
    bind(rig, "out.txt", "folder")
    actions = ended(
        rig, STDOUT, work("folder", 0), Output(name=name, size_bytes=9, is_executable=True), work("out.txt")
    )
    assert fetched(actions) == ["stdout", "work/folder", "work/out.txt"]
    (report,) = only(actions, Report)
    assert (report.neighbor, report.code) == (CHILD, ReportCode.UNDECLARED_OUTPUT)
    row = final(rig.handle(OutputsHome(attempt=attempt())))
    assert row.result is not None
    assert row.state == "finished"
    assert [output.name for output in row.result.outputs] == ["stdout", "work/folder", "work/out.txt"]


def test_an_empty_file_that_was_not_declared_is_refused_although_nothing_is_fetched(rig: Rig) -> None:
    bind(rig, "out.txt")
    row = final(ended(rig, work(".hushlogin", 0), work("out.txt", 0)))
    assert row.result is not None
    assert [output.name for output in row.result.outputs] == ["work/out.txt"]


def test_declared_files_and_what_lies_below_declared_folders_come_home(rig: Rig) -> None:
    bind(rig, "out.txt", "a/folder")
    actions = ended(rig, STDOUT, STDERR, work("out.txt"), work("a/folder/x"), work("a/folder/deep/y"))
    assert fetched(actions) == ["stdout", "stderr", "work/out.txt", "work/a/folder/x", "work/a/folder/deep/y"]
    assert only(actions, Report) == ()


def test_names_beyond_those_that_an_executor_may_report_are_not_even_compared(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    class Noting(Declared):
        def covers(self, path: str) -> bool:
            compared.append(path)
            return super().covers(path)

    monkeypatch.setattr(reported_outputs, "Declared", Noting)
    bind(rig, "out/*")
    names = [f"out/{'x' * 240}{number:04}" for number in range(1_000)]
    actions = ended(rig, *map(work, names), STDOUT)
    within = names[: NAMES_LIMIT_BYTES // len(names[0])]
    assert (compared, fetched(actions)) == (within, [*(f"work/{name}" for name in within), "stdout"])
    (report,) = only(actions, Report)
    assert report.code == ReportCode.UNDECLARED_OUTPUT


@pytest.mark.parametrize("exit_code", [0, 3])
@pytest.mark.parametrize("reported", [(), (STDOUT,), (STDOUT, work("a", 0)), (work("a"), work("c"))])
def test_an_executor_that_reports_a_finished_task_without_its_declared_outputs_is_not_believed(
    rig: Rig, reported: tuple[Output, ...], exit_code: int
) -> None:
    bind(rig, "a", "b", "*.txt")
    actions = ended(rig, *reported, exit_code=exit_code)
    row = final((*actions, *rig.handle(OutputsHome(attempt=attempt()))))
    assert row.result is not None
    arrived = [output for output in reported if output.name != "work/c"]
    missing = "*.txt, b" if work("a", 0) in reported or work("a") in reported else "*.txt, a, b"
    assert (row.state, row.result.cause, row.result.exit_code) == ("aborted", Cause.OUTPUT_MISSING, exit_code)
    assert (list(row.result.outputs), row.result.text) == (arrived, f"missing at the end: {missing}")


def test_a_task_that_failed_without_its_outputs_has_its_retries_whoever_says_that_they_are_missing(rig: Rig) -> None:
    bind(rig, "a", retries=1)
    assert only(ended(rig, exit_code=3), TaskEnded) == ()
    assert rig.state.origin.tasks[TASK].failures == 1


def test_a_declared_folder_may_turn_out_to_be_a_file_but_not_both(rig: Rig) -> None:
    bind(rig, "out")
    actions = ended(rig, work("out"), work("out/x"), work("out"))
    assert fetched(actions) == ["work/out"]
    assert len(only(actions, Report)) == 1


def test_a_log_is_never_executable(rig: Rig) -> None:
    bind(rig)
    (fetch,) = only(ended(rig, Output(name="stdout", size_bytes=5, is_executable=True)), FetchOutputs)
    assert fetch.outputs == (STDOUT,)


def test_each_member_has_the_outputs_of_its_own_item(rig: Rig) -> None:
    bind(rig, "{}.gz", members=2, items=("one", "two"))
    said = status(attempt(member=1), outputs=(work("two.gz"), work("one.gz")))
    assert fetched(rig.hear(CHILD, statuses(said))) == ["work/one.gz"]


@pytest.mark.parametrize(
    ("disk", "limit_bytes"),
    [(None, LIMIT_BYTES), (0, LEAST_LIMIT_BYTES), (2 * GIB, 2 * GIB), (64 * GIB, 64 * GIB)],
)
def test_outputs_up_to_what_the_task_may_bring_come_home_and_not_a_byte_more(
    rig: Rig, disk: int | None, limit_bytes: int
) -> None:
    needs = tdv() if disk is None else tdv(disk=disk)
    bind(rig, "out", tdv=needs)
    assert fetched(ended(rig, STDOUT, work("out", limit_bytes - 5))) == ["stdout", "work/out"]
    rig.handle(OutputsHome(attempt=attempt()))
    ((_, ask),) = sent(rig.submit(command=Command(argv=("true",), outputs=("out",)), tdv=needs, key="k2"), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    other = attempt(task=TASK._replace(number=2))
    actions = rig.hear(CHILD, statuses(status(other, exit_code=3, outputs=(STDOUT, work("out", limit_bytes - 4)))))
    assert fetched(actions) == ["stdout"]
    row = final(rig.handle(OutputsHome(attempt=other)))
    assert row.result is not None
    assert (row.state, row.result.cause, row.result.exit_code) == ("aborted", Cause.TOO_MUCH_OUTPUT, 3)
    assert str(limit_bytes) in row.result.text


def test_a_site_takes_no_more_than_its_maximum_whatever_a_task_states(rig: Rig) -> None:
    rig.state.identity = replace(rig.state.identity, outputs_bytes=GIB)
    bind(rig, "out", tdv=tdv(disk=64 * GIB))
    assert fetched(ended(rig, STDOUT, work("out", GIB - 4))) == ["stdout"]
    row = final(rig.handle(OutputsHome(attempt=attempt())))
    assert row.result is not None
    assert (row.state, row.result.cause) == ("aborted", Cause.TOO_MUCH_OUTPUT)
    expected = f"its outputs take {GIB + 1} bytes, more than what this site takes of one task, the limit of {GIB}"
    assert row.result.text == expected


def test_the_maximum_of_a_site_gives_no_task_more_than_its_own_limit(rig: Rig) -> None:
    rig.state.identity = replace(rig.state.identity, outputs_bytes=64 * GIB)
    bind(rig, "out", tdv=tdv(disk=2 * GIB))
    ended(rig, STDOUT, work("out", 2 * GIB))
    row = final(rig.handle(OutputsHome(attempt=attempt())))
    assert row.result is not None
    assert row.result.text.endswith(f"more than the limit of {2 * GIB}: raise it with --disk SIZE")


def test_a_log_without_end_ends_its_task_at_once(rig: Rig) -> None:
    bind(rig, "out")
    actions = ended(rig, Output(name="stdout", size_bytes=1 << 62), STDERR, work("out"))
    assert fetched(actions) == ["stderr"]


def test_nothing_is_fetched_if_nothing_fits(rig: Rig) -> None:
    bind(rig)
    row = final(ended(rig, Output(name="stdout", size_bytes=1 << 62)))
    assert row.result is not None
    assert (row.state, row.result.cause, row.result.exit_code, row.result.outputs) == (
        "aborted",
        Cause.TOO_MUCH_OUTPUT,
        0,
        (),
    )


def test_a_killed_or_aborted_task_stays_what_it_was_when_it_left_too_much(rig: Rig) -> None:
    bind(rig)
    row = final(ended(rig, Output(name="stdout", size_bytes=1 << 62), state=TaskState.ABORTED, cause=Cause.TIME_LIMIT))
    assert row.result is not None
    assert (row.state, row.result.cause) == ("aborted", "time_limit")


def test_a_cancel_ends_the_fetch_and_the_task_at_once(rig: Rig) -> None:
    bind(rig)
    ended(rig, STDOUT, exit_code=4)
    actions = rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    assert only(actions, EndFetch) == (EndFetch(attempt=attempt()),)
    assert only(actions, TaskEnded) == (TaskEnded(task=TASK),)
    assert message_in(actions, TaskStatusAck).taken == (attempt(),)
    assert sent(actions, TaskKill) == ()
    row = final(actions)
    assert row.result is not None
    assert (row.state, row.result.exit_code, row.result.outputs) == ("killed", 4, ())
    assert rig.handle(OutputsHome(attempt=attempt())) == ()


def test_a_cancel_between_two_tries_to_fetch_ends_the_task_as_well(rig: Rig) -> None:
    bind(rig)
    ended(rig, STDOUT)
    rig.handle(OutputsFailed(attempt=attempt(), leg=LEG, text="unreachable", is_gone=False))
    assert final(rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))).state == "killed"
    assert only(rig.wait(10 * SECOND), FetchOutputs) == ()


def test_a_fetch_ends_with_the_lease_of_its_claim(rig: Rig) -> None:
    bind(rig)
    ended(rig, STDOUT)
    assert only(rig.wait(2 * LEASE_NS), EndFetch) == (EndFetch(attempt=attempt()),)


def test_a_home_without_room_is_waited_for_and_said_once(rig: Rig) -> None:
    bind(rig)
    ended(rig, STDOUT)
    full = OutputsFailed(attempt=attempt(), leg=LEG, text="no room for 5 bytes", is_gone=False, is_full=True)
    stored = [len(only((*rig.wait(10 * SECOND), *rig.handle(full)), Store)) for _ in range(10)]
    assert stored == [1, *[0] * 9]
    assert rig.state.origin.fetch_failures.get(attempt(), 0) == 0
    assert [(entry.event, entry.text) for entry in rig.state.origin.tasks[TASK].history[-1:]] == [
        ("no_space", "no room for 5 bytes")
    ]


def test_a_bound_on_the_way_that_stops_outputs_is_no_full_disk_and_is_said_where_it_is(rig: Rig) -> None:
    bind(rig)
    ended(rig, STDOUT)
    text = "south: north may move 1MiB in a day"
    refused = OutputsFailed(attempt=attempt(), leg=LEG, text=text, is_gone=False, is_refused=True)
    first_at = rig.now
    for _ in range(3):
        rig.handle(refused)
        assert only(rig.wait(10 * SECOND), FetchOutputs)
    row = rig.state.origin.tasks[TASK]
    assert [(entry.event, entry.module, entry.text) for entry in row.history[-2:]][1:] == [
        ("outputs_refused", LEG.system, text)
    ]
    assert row.history[-2].event == "bound"
    assert queries.delay_of(rig.state, row) == Delay(of=Delayed.OUTPUTS, since=first_at, text=text)
    rig.handle(OutputsHome(attempt=attempt()))
    assert rig.state.origin.fetch_troubles == {}


class Counted(frozenset[str]):
    """Names that count how often one of them was looked up (mutable)."""

    looks = 0

    def __contains__(self, name: object, /) -> bool:
        self.looks += 1
        return super().__contains__(name)


def test_a_path_of_thousands_of_folders_is_not_looked_up_for_each_of_them() -> None:
    declared = Counted({"out", "logs/day"})
    assert not Declared(declared).covers("a/" * 2_000 + "b")
    assert Declared(declared).covers("logs/day/" + "a/" * 2_000 + "b")
    assert declared.looks <= 4


class Cut(str):
    """A name that counts how often a part of it was taken (mutable)."""

    __slots__ = ("cuts",)
    cuts: int

    def __getitem__(self, key: SupportsIndex | slice, /) -> str:
        self.cuts += 1
        return super().__getitem__(key)


def test_files_in_what_is_a_file_are_found_without_a_look_at_each_folder() -> None:
    deep = Cut("work/out/" + "a/" * 2_000 + "b")
    deep.cuts = 0
    names = (deep, "work/out/f/x/y", "work/out/f-g", "work/out/f", "work/out/f/z", "stdout")
    status_now = status(attempt(), outputs=tuple(Output(name=name, size_bytes=1) for name in names))
    taken, undeclared = accepted(status_now, ("out",), tdv=tdv())
    assert [output.name for output in taken.outputs] == [deep, "work/out/f-g", "work/out/f", "stdout"]
    assert set(undeclared) == {"work/out/f/x/y", "work/out/f/z"}
    assert deep.cuts <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("text withheld by the border gate-a", "missing at the end: *.txt, a"),
        ("", "missing at the end: *.txt, a"),
        ("missing at the end: a, *.txt", "missing at the end: a, *.txt"),
    ],
)
def test_missing_outputs_are_named_by_their_origin_if_their_executors_text_was_withheld(
    rig: Rig, text: str, shown: str
) -> None:
    bind(rig, "a", "folder", "b", "*.txt", "*.log", "empty")
    outputs = (work("folder/a"), work("b"), work("x.log"), Output(name="work/empty", size_bytes=0, is_folder=True))
    ended(rig, *outputs, state=TaskState.ABORTED, exit_code=0, cause=Cause.OUTPUT_MISSING, text=text)
    row = final(rig.handle(OutputsHome(attempt=attempt())))
    assert row.result is not None
    assert (row.result.cause, row.result.text) == (Cause.OUTPUT_MISSING, shown)


def test_no_more_than_five_missing_outputs_are_named(rig: Rig) -> None:
    bind(rig, *(f"out-{number}" for number in range(8)))
    row = final(ended(rig, state=TaskState.ABORTED, exit_code=0, cause=Cause.OUTPUT_MISSING))
    assert row.result is not None
    assert row.result.text == "missing at the end: out-0, out-1, out-2, out-3, out-4 and 3 more"
