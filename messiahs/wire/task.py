"""The task channel's messages (MESSIAHS 5.3.3)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from messiahs.core.interface.messages import BoundTask, Command, TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.ids import AttemptId, ClaimId, Ticket
from messiahs.core.model.terminals import LONGEST, TerminalSize
from messiahs.errors import CodecError
from messiahs.wire.files import (
    TO_FAILURE,
    BulkOffer,
    check_files,
    failure_of,
    offer_in,
    offer_to,
    read_inputs,
    write_files,
)
from messiahs.wire.ids import read_attempt, read_claim, write_attempt, write_claim
from messiahs.wire.limits import (
    BATCH_LIMIT,
    COMMAND_LIMIT_BYTES,
    FILE_LIMIT,
    PATH_LIMIT_BYTES,
    TEXT_LIMIT_BYTES,
    at_most,
    counter,
    line,
    relative_path,
    secret,
    shortened,
)
from messiahs.wire.parsing import in_parts, parsed, serialized, whole
from messiahs.wire.v1 import task_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Requests an output of an attempt from an offset on; with `follow`, new output is sent until the attempt ends.

    With `bulk`, the answer may offer a stream of raw bytes, or the receiver may dial the one in `offer`; with `hashed`,
    the answer ends with the hash of the whole output.
    """

    claim: ClaimId
    ticket: Ticket
    attempt: AttemptId
    name: str
    offset_bytes: int = 0
    follow: bool = False
    bulk: bool = False
    hashed: bool = False
    offer: BulkOffer | None = None


def encode_transfer(transfer: TaskTransfer, files: Sequence[bytes] = ()) -> task_pb2.TaskTransfer:
    """Encode a transfer and the contents of small inputs; a `CodecError` explains why it cannot be sent."""
    wire = task_pb2.TaskTransfer(files=files)
    at_most(len(transfer.tasks), BATCH_LIMIT, what="tasks")
    try:
        write_claim(wire.claim, transfer.claim)
        wire.ticket, wire.supplier = transfer.ticket, transfer.supplier
        for task in transfer.tasks:
            _write_task(wire.tasks.add(), task)
    except ValueError as error:
        raise CodecError(f"a task cannot be sent: {error}") from error
    return wire


def decode_transfer(wire: task_pb2.TaskTransfer) -> TaskTransfer:
    """Check a transfer."""
    return whole(_decoding(wire))


def _decoding(wire: task_pb2.TaskTransfer) -> Generator[None, None, TaskTransfer]:
    at_most(len(wire.tasks), BATCH_LIMIT, what="tasks")
    return TaskTransfer(
        claim=read_claim(wire.claim),
        ticket=Ticket(secret(wire.ticket)),
        tasks=(yield from in_parts(_read_task, wire.tasks, entries=_entries)),
        supplier=secret(wire.supplier) if wire.supplier else b"",
    )


def _entries(wire: task_pb2.BoundTask) -> int:
    command = wire.command
    return len(command.inputs) + len(command.outputs) + len(command.argv) + len(command.env)


def _write_task(wire: task_pb2.BoundTask, task: BoundTask) -> None:
    write_attempt(wire.attempt, task.attempt)
    command = wire.command
    command.argv.extend([_to_bytes(argument) for argument in task.command.argv])
    for name, value in task.command.env:
        command.env.add(name=_to_bytes(name), value=_to_bytes(value))
    command.takes_stdin, command.cwd = task.command.takes_stdin, task.command.cwd
    if (size := task.command.terminal) is not None:
        command.terminal.rows, command.terminal.columns = size.rows, size.columns
    write_files(command, task.command)
    _check_command(command)


def _read_task(wire: task_pb2.BoundTask) -> BoundTask:
    _check_command(wire.command)
    check_files(wire.command)
    return BoundTask(
        attempt=read_attempt(wire.attempt),
        command=Command(
            argv=tuple(map(_to_text, wire.command.argv)),
            env=tuple((_to_text(variable.name), _to_text(variable.value)) for variable in wire.command.env),
            inputs=read_inputs(wire.command),
            outputs=tuple(wire.command.outputs),
            takes_stdin=wire.command.takes_stdin,
            cwd=wire.command.cwd,
            terminal=_read_size(wire.command.terminal) if wire.command.HasField("terminal") else None,
        ),
    )


def _read_size(wire: task_pb2.TerminalSize) -> TerminalSize:
    if not (1 <= wire.rows <= LONGEST and 1 <= wire.columns <= LONGEST):
        raise CodecError(f"a terminal has 1 to {LONGEST} rows and columns")
    return TerminalSize(rows=wire.rows, columns=wire.columns)


def _check_command(command: task_pb2.Command) -> None:
    """Refuse a command that cannot start a process."""
    names = [variable.name for variable in command.env]
    parts = [*command.argv, *names, *(variable.value for variable in command.env)]
    at_most(sum(map(len, parts)) + len(parts), COMMAND_LIMIT_BYTES, what="bytes of command and environment")
    if not command.argv or not command.argv[0]:
        raise CodecError("a task without a command")
    if any(b"\0" in part for part in parts):
        raise CodecError("a command or its environment contains a zero byte")
    line(command.cwd, PATH_LIMIT_BYTES)
    if any(not name or b"=" in name for name in names):
        raise CodecError("an environment variable has no name, or its name contains =")


def _to_bytes(text: str) -> bytes:
    # A UnicodeError is a ValueError. Text that is not Unicode cannot be stored either, so it never gets here.
    return text.encode()


def _to_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CodecError("a command or its environment is not UTF-8") from error


def transfer_to_bytes(transfer: TaskTransfer, files: Sequence[bytes] = ()) -> bytes:
    """Serialise a transfer, with the contents of small inputs."""
    return serialized(encode_transfer(transfer, files))


def transfer_from_bytes(content: bytes) -> TaskTransfer:
    """Parse a transfer; contents of files are ignored."""
    return decode_transfer(parsed(task_pb2.TaskTransfer(), content))


def transfer_and_files_from_bytes(content: bytes) -> tuple[TaskTransfer, tuple[bytes, ...]]:
    """Parse a transfer and the contents of files in it."""
    return whole(decoding_transfer_and_files(content))


def decoding_transfer_and_files(content: bytes) -> Generator[None, None, tuple[TaskTransfer, tuple[bytes, ...]]]:
    """Parse a transfer and the contents of files in it, with pauses: see `in_parts`."""
    wire = parsed(task_pb2.TaskTransfer(), content)
    at_most(len(wire.files), FILE_LIMIT, what="files")
    transfer = yield from _decoding(wire)
    return transfer, tuple(wire.files)


def joined_transfers(transfers: Sequence[bytes]) -> bytes:
    """Join serialised transfers of the same claim and ticket; their tasks stay in order."""
    return b"".join(transfers)


def answer_to_bytes(answer: TransferAnswer) -> bytes:
    """Serialise the answer to a dropped transfer; failures of the sender's own streams are not sent."""
    wire = task_pb2.TransferAnswer(problem=shortened(answer.problem, TEXT_LIMIT_BYTES), kind=TO_FAILURE[answer.kind])
    if answer.claim is not None:
        write_claim(wire.claim, answer.claim)
    return serialized(wire)


def answer_from_bytes(content: bytes) -> TransferAnswer:
    """Parse the answer to a dropped transfer; a kind of a newer release counts as refused."""
    wire = parsed(task_pb2.TransferAnswer(), content)
    return TransferAnswer(
        claim=read_claim(wire.claim) if wire.HasField("claim") else None,
        problem=line(wire.problem, TEXT_LIMIT_BYTES),
        kind=failure_of(wire.kind),
    )


def read_request_to_bytes(request: ReadRequest) -> bytes:
    """Serialise a request for an output."""
    wire = task_pb2.ReadRequest(
        ticket=request.ticket,
        name=request.name,
        offset_bytes=request.offset_bytes,
        follow=request.follow,
        bulk=request.bulk,
        hashed=request.hashed,
    )
    write_claim(wire.claim, request.claim)
    write_attempt(wire.attempt, request.attempt)
    if request.offer is not None:
        wire.offer.CopyFrom(offer_to(request.offer))
    return serialized(wire)


def read_request_from_bytes(content: bytes) -> ReadRequest:
    """Parse a request for an output."""
    wire = parsed(task_pb2.ReadRequest(), content)
    return ReadRequest(
        claim=read_claim(wire.claim),
        ticket=Ticket(secret(wire.ticket)),
        attempt=read_attempt(wire.attempt),
        name=relative_path(wire.name),
        offset_bytes=counter(wire.offset_bytes),
        follow=wire.follow,
        bulk=wire.bulk,
        hashed=wire.hashed,
        offer=offer_in(wire.offer) if wire.HasField("offer") else None,
    )
