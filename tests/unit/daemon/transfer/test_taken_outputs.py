"""Outputs that become inputs of tasks which have waited for them: what is answered if that can never be."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import ChannelSettings
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.core.interface.actions import Store, TakeOutputs
from messiahs.core.interface.dependencies import Dependency, WantedOutput, When
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import Instant
from messiahs.core.model.task_files import InputFile, Output
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.daemon.transfer import taken_outputs
from messiahs.daemon.transfer.input_room import InputRoom
from messiahs.daemon.transfer.output_arrivals import Outputs
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.taken_outputs import KeptOutputs, OutputTaking
from messiahs.daemon.transfer.underway_files import UnderwayFiles, Upload
from messiahs.trace.record.recorder import RecordedModule
from tests.contract.channel_modules import FEDERATION, NYNEVE, Recorded
from tests.unit.core.rig import TASK, attempt, make_module, status, tdv

LATER = TASK._replace(number=2)
AFTER = (Dependency(on=TASK, when=When.OK.value, outputs=(WantedOutput(name="d", to="in"),), is_met=True),)
LEFT = (Output(name="work/d/x", size_bytes=3), Output(name="work/d/run", size_bytes=2, is_executable=True))
FIRST = SubmissionRow(
    id=TASK,
    key=ClientKey("k1"),
    tdv=tdv(),
    requirement="",
    command=Command(argv=("true",), outputs=("d",)),
    members=0,
    submitted_at=Instant(0),
)
SECOND = replace(FIRST, id=LATER, key=ClientKey("k2"), command=Command(argv=("true",)), after=AFTER)
ENDED = TaskRow(id=TASK, state=TaskState.FINISHED, result=replace(status(attempt()), outputs=LEFT))


def taken(
    folder: Path,
    *,
    waiting: SubmissionRow | None = SECOND,
    is_stored: bool = True,
    ended: TaskRow = ENDED,
    beside: Upload | None = None,
) -> list[OutputsTaken]:
    """Take the outputs for a submission, of which all but the first file is there unless `is_stored`.

    An upload `beside` that ends after the first answer.
    """
    underway, events = UnderwayFiles(), list[OutputsTaken]()
    if beside is not None:
        underway.uploads.add(beside)

    def note(event: OutputsTaken) -> None:
        events.append(event)
        underway.uploads.clear()

    async def play() -> list[OutputsTaken]:
        (folder / "files").mkdir()
        store, files = RowStore(folder / "module.db"), FileStore(folder / "files")
        kept = [KeepOutput(task=TASK, name="work/d/run", body=b"go")]
        if is_stored:
            kept.append(KeepOutput(task=TASK, name="work/d/x", body=b"new"))
        store.commit([Store(row=FIRST), Store(row=ended), *kept], Instant(1))
        settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
        channels = memory_channels(settings, Recorded(name=NYNEVE).callbacks(), MemoryNetwork())
        own = OwnOutputs(None, RecordedModule(make_module()))
        outputs = Outputs(folder / "outputs", store, own=NYNEVE, channels=channels, here=own)
        room = InputRoom(files, underway, in_use=set, spent=lambda: dict)
        find: Callable[[object], SubmissionRow | None] = lambda _: waiting  # noqa: E731
        taking = OutputTaking(store, KeptOutputs(files, room, outputs), submission_of=find, on_event=note)
        await taking.take(TakeOutputs(submission=LATER, after=AFTER if waiting is None else waiting.after))
        store.close()
        return events

    return asyncio.run(play())


def test_files_of_a_folder_get_names_below_that_of_the_input(tmp_path: Path) -> None:
    (answer,) = taken(tmp_path)
    assert sorted((one.name, one.size_bytes, one.is_executable) for one in answer.inputs) == [
        ("in/run", 2, True),
        ("in/x", 3, False),
    ]
    contents = {one.name: FileStore(tmp_path / "files").path(one.sha256).read_bytes() for one in answer.inputs}
    assert contents == {"in/run": b"go", "in/x": b"new"}


def test_what_is_gone_or_was_never_there_is_a_problem(tmp_path: Path) -> None:
    unknown = TASK._replace(number=9)
    for number, (dependency, said) in enumerate(
        [
            (replace(AFTER[0], on=unknown), f"{unknown} is no longer known here, so d cannot be taken from it"),
            (
                replace(AFTER[0], outputs=(WantedOutput(name="e", to="e"),)),
                f"e was not there when {TASK} ended: it left d/run, d/x",
            ),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert taken(folder, waiting=replace(SECOND, after=(dependency,))) == [
            OutputsTaken(submission=LATER, problem=said)
        ]


def test_outputs_for_which_there_is_no_room_are_a_delay_until_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taken_outputs, "_AGAIN_SECONDS", 0.01)
    first, last = taken(tmp_path, beside=Upload("user:other", 1 << 60))
    assert ("no room" in first.delay, first.inputs, first.problem) == (True, (), "")
    assert (last.delay, last.problem, len(last.inputs)) == ("", "", 2)


def test_an_output_that_is_not_there_as_it_was_is_a_problem(tmp_path: Path) -> None:
    said = f"d/x of {TASK} is no longer there: 0 of 3 bytes"
    assert taken(tmp_path, is_stored=False) == [OutputsTaken(submission=LATER, problem=said)]


def test_more_inputs_than_can_be_described_are_a_problem(tmp_path: Path) -> None:
    many = tuple(InputFile(name=f"{number}", sha256=bytes(32), size_bytes=0) for number in range(4_970))
    command = replace(SECOND.command, inputs=many)
    (answer,) = taken(tmp_path, waiting=replace(SECOND, command=command))
    assert "bytes to describe" in answer.problem


def test_a_link_that_leads_out_from_its_new_place_is_a_problem(tmp_path: Path) -> None:
    moved = replace(AFTER[0], outputs=(WantedOutput(name="d/sub", to="sub"),))
    left = (Output(name="work/d/sub/link", link_target="../../x", size_bytes=0),)
    ended = replace(ENDED, result=replace(status(attempt()), outputs=left))
    (answer,) = taken(tmp_path, waiting=replace(SECOND, after=(moved,)), ended=ended)
    assert answer.problem == "the link 'sub/link' leads to '../../x', out of the working directory"


@pytest.mark.parametrize("waiting", [None, replace(SECOND, taken=1)])
def test_nothing_is_taken_for_what_has_ended_or_has_its_outputs(tmp_path: Path, waiting: SubmissionRow | None) -> None:
    assert not taken(tmp_path, waiting=waiting)
