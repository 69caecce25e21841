"""Long messages are checked in parts, between which a host may do other work (MESSIAHS 4.2: a neighbor that floods)."""

from dataclasses import replace

import pytest

from messiahs.core.interface.messages import AttemptStatus, BoundTask, Command, TaskState, TaskStatus, TaskTransfer
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.output_names import DECLARED_PREFIX
from messiahs.core.model.task_files import InputFile, Output
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    control_from_bytes,
    control_to_bytes,
    decoding_transfer_and_files,
    each_control_in,
    transfer_to_bytes,
)

SYSTEM = SystemId("evil")
CLAIM = ClaimId(SYSTEM, Epoch(1), 1)
LONG = 7
"""Tasks or attempts, each of which has so many names that a pause follows."""
ATTEMPTS = tuple(AttemptId(TaskId(SYSTEM, Epoch(1), 1 + number, 0), 1) for number in range(LONG))


def outputs(count: int) -> tuple[Output, ...]:
    return tuple(Output(name=f"{DECLARED_PREFIX}{number}", size_bytes=0, link_target="x") for number in range(count))


def status(names: int) -> TaskStatus:
    attempts = tuple(
        AttemptStatus(attempt=each, state=TaskState.FINISHED, exit_code=0, outputs=outputs(names)) for each in ATTEMPTS
    )
    return TaskStatus(claim=CLAIM, attempts=attempts, window=1)


def transfer(command: Command) -> TaskTransfer:
    tasks = tuple(BoundTask(attempt=each, command=command) for each in ATTEMPTS)
    return TaskTransfer(claim=CLAIM, ticket=Ticket(bytes(16)), tasks=tasks)


@pytest.mark.parametrize(
    "command",
    [
        Command(
            argv=("true",),
            inputs=tuple(InputFile(name=f"{each}", sha256=b"", size_bytes=0, link_target="x") for each in range(1_000)),
        ),
        Command(argv=("true",), outputs=tuple(f"{each}" for each in range(1_000))),
        Command(argv=("true", *["x"] * 1_000)),
        Command(argv=("true",), env=tuple((f"v{each}", "x") for each in range(1_000))),
    ],
    ids=["inputs", "outputs", "arguments", "variables"],
)
def test_a_transfer_of_tasks_with_many_names_pauses_after_each_of_them(command: Command) -> None:
    decoding = decoding_transfer_and_files(transfer_to_bytes(transfer(command)))
    for _ in range(LONG):
        next(decoding)
    with pytest.raises(StopIteration) as end:
        next(decoding)
    assert end.value.value == (transfer(command), ())


def test_small_tasks_are_checked_without_a_pause() -> None:
    decoding = decoding_transfer_and_files(transfer_to_bytes(transfer(Command(argv=("true",)))))
    with pytest.raises(StopIteration):
        next(decoding)


def test_a_status_of_attempts_with_many_outputs_pauses_after_each_of_them() -> None:
    content = control_to_bytes((status(names=1_000),))
    assert list(each_control_in(content, on_drop=pytest.fail)) == [*[None] * LONG, status(names=1_000)]
    assert control_from_bytes(content) == (status(names=1_000),)
    few = control_to_bytes((status(names=1),))
    assert list(each_control_in(few, on_drop=pytest.fail)) == [status(names=1)]


def test_a_mistake_after_a_pause_refuses_its_message_alone() -> None:
    long, right = status(names=1_000), TaskStatus(claim=CLAIM, attempts=(), window=1)
    *others, last = long.attempts
    wrong = replace(long, attempts=(*others, replace(last, outputs=(Output(name="wrong", size_bytes=0),))))
    content = control_to_bytes((wrong, right))
    dropped: list[str] = []
    # One pause for each of the others, and None for the message that is skipped.
    assert list(each_control_in(content, on_drop=dropped.append)) == [*[None] * LONG, right]
    assert len(dropped) == 1
    with pytest.raises(CodecError):
        control_from_bytes(content)
