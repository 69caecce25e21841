"""Refused values about files: each in a message that is otherwise well-formed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from messiahs.core.interface.messages import BoundTask, Command, TaskTransfer
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.task_files import DESCRIPTION_LIMIT_BYTES, InputFile, entry_bytes
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    PutFile,
    PutRequest,
    decode_transfer,
    encode_transfer,
    put_content_from_bytes,
    put_content_to_bytes,
    put_request_from_bytes,
    put_request_to_bytes,
    transfer_and_files_from_bytes,
    transfer_to_bytes,
)
from messiahs.wire.v1 import task_pb2

CS = SystemId("cs")
CLAIM = ClaimId(CS, Epoch(1), 1)
ATTEMPT = AttemptId(TaskId(CS, Epoch(1), 1), 1)
INPUT = InputFile(name="data/in.txt", sha256=bytes(32), size_bytes=3)


def add_input(wire: task_pb2.TaskTransfer, name: str, *, sha256: bytes = bytes(32)) -> None:
    wire.tasks[0].command.inputs.add(name=name, sha256=sha256)


def add_link(
    wire: task_pb2.TaskTransfer,
    name: str,
    *,
    target: str = "",
    is_folder: bool = False,
    size_bytes: int = 0,
    sha256: bytes = b"",
) -> None:
    wire.tasks[0].command.inputs.add(
        name=name, link_target=target, is_folder=is_folder, size_bytes=size_bytes, sha256=sha256
    )


def add_outputs(wire: task_pb2.TaskTransfer, *names: str) -> None:
    wire.tasks[0].command.outputs.extend(names)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: add_input(wire, "data/in.txt"),
        lambda wire: add_input(wire, "data"),
        lambda wire: add_input(wire, "data/in.txt/more"),
        *[
            lambda wire, name=name: add_input(wire, name)
            for name in ("", "/", "/etc/x", "a//b", "./a", "a/..", "../a", "a/", "a\0b", "a\nb", "\x9b", "x" * 256)
        ],
        lambda wire: add_input(wire, "/".join(["x"] * 2049)),
        lambda wire: add_input(wire, "other", sha256=b"short"),
        lambda wire: setattr(wire.tasks[0].command.inputs[0], "size_bytes", 1 << 63),
        lambda wire: wire.tasks[0].command.inputs.extend(
            task_pb2.InputFile(name=f"in{number}", sha256=bytes(32)) for number in range(5_000)
        ),
        *[
            lambda wire, target=target: add_link(wire, "data/link", target=target)
            for target in ("/etc", "../..", "../../x", "a/../b", "a/../../../x", "a\x1b", "a\u202e", "x" * 4097)
        ],
        lambda wire: add_link(wire, "data/in.txt/link", target="x"),
        lambda wire: add_link(wire, "link", target="x", size_bytes=1),
        lambda wire: add_link(wire, "link", target="x", is_folder=True),
        lambda wire: add_link(wire, "link", target="x", sha256=b"short"),
        lambda wire: add_link(wire, "folder", is_folder=True, size_bytes=1),
        lambda wire: add_link(wire, "neither"),
        lambda wire: wire.tasks[0].command.inputs.extend(
            task_pb2.InputFile(name=f"link{number}", link_target="x/" * 2_000) for number in range(90)
        ),
        lambda wire: add_outputs(wire, *[f"{number}*" for number in range(33)]),
        lambda wire: add_outputs(wire, "*/" * 64 + "x"),
        lambda wire: add_outputs(wire, "../a"),
        lambda wire: add_outputs(wire, *["x"] * 1024),
        lambda wire: add_outputs(wire, *["x" * 250 + "/" + "y" * 250] * 600),
    ],
)
def test_files_of_a_task_are_refused(spoil: Callable[[task_pb2.TaskTransfer], None]) -> None:
    link = InputFile(name="data/up", sha256=b"", size_bytes=0, link_target="../data.txt")
    folder = InputFile(name="none", sha256=b"", size_bytes=0, is_folder=True)
    inputs = (INPUT, replace(INPUT, name="data.txt"), link, folder)
    command = Command(argv=("true",), inputs=inputs, outputs=("out", "*/[a-z]/**/x?"))
    task = BoundTask(attempt=ATTEMPT, command=command)
    wire = encode_transfer(TaskTransfer(claim=CLAIM, ticket=Ticket(bytes(16)), tasks=(task,)))
    assert decode_transfer(wire).tasks[0].command == command
    spoil(wire)
    with pytest.raises(CodecError):
        decode_transfer(wire)


def test_everything_that_may_be_described_fits_a_message_with_its_command_and_small_files() -> None:
    # Short names make the most of what each input takes beside its name.
    names = [f"{number:04x}" for number in range(DESCRIPTION_LIMIT_BYTES // entry_bytes("0000"))]
    inputs = [InputFile(name=name, sha256=bytes(32), size_bytes=(1 << 63) - 1, is_executable=True) for name in names]
    command = Command(argv=("x" * ((128 << 10) - 1),), inputs=tuple(inputs))
    transfer = TaskTransfer(claim=CLAIM, ticket=Ticket(bytes(16)), tasks=(BoundTask(attempt=ATTEMPT, command=command),))
    content = transfer_to_bytes(transfer, [bytes(512)] * 1024)
    assert transfer_and_files_from_bytes(content)[0] == transfer


@pytest.mark.parametrize(
    "files",
    [(PutFile(b"short", 1),), (PutFile(bytes(32), 1 << 63),), (PutFile(bytes(32), 1), PutFile(bytes(32), 1))],
)
def test_a_request_to_bring_files_is_refused(files: tuple[PutFile, ...]) -> None:
    request = PutRequest(claim=CLAIM, ticket=Ticket(bytes(16)), files=files)
    with pytest.raises(CodecError):
        put_request_from_bytes(put_request_to_bytes(request))


def test_more_than_1024_files_cannot_be_brought_at_once() -> None:
    files = tuple(PutFile(number.to_bytes(32), 1) for number in range(1025))
    with pytest.raises(CodecError, match="1024"):
        put_request_to_bytes(PutRequest(claim=CLAIM, ticket=Ticket(bytes(16)), files=files))


def test_a_request_and_a_piece_are_not_taken_for_each_other() -> None:
    request = put_request_to_bytes(PutRequest(claim=CLAIM, ticket=Ticket(bytes(16)), files=()))
    with pytest.raises(CodecError):
        put_content_from_bytes(request)
    with pytest.raises(CodecError):
        put_request_from_bytes(put_content_to_bytes(b"x"))
