"""The starter brings standard input in turns, however many frames a piece has."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.terminals import TerminalSize, frame_of_size
from messiahs.executor.attempt_values import Start
from messiahs.executor.protocol.frames import Fed, Feed
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.standard_input import Inputs
from messiahs.executor.starter.terminals import Terminals

SIZES = (frame_of_size(TerminalSize(rows=30, columns=80)) + frame_of_size(TerminalSize(rows=31, columns=81))) * 500
ORIGIN = SystemId("origin")


def attempt(number: int) -> AttemptId:
    return AttemptId(TaskId(ORIGIN, Epoch(1), number), 1)


def start_of(number: int, *, terminal: tuple[int, int] | None) -> Start:
    return Start(
        attempt=attempt(number),
        claim=ClaimId(executor=ORIGIN, epoch=Epoch(1), number=1),
        argv=("cat",),
        env=(),
        places=1,
        limit_ns=None,
        lease_until=0,
        takes_stdin=True,
        terminal=terminal,
    )


def taken(folder: Path) -> Taken:
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    return Taken("folder", log, os.dup(log))


@pytest.fixture
def inputs(tmp_path: Path) -> Iterator[Inputs]:
    """Make the inputs of twenty attempts that have terminals."""
    terminals = Terminals()
    made = Inputs(terminals)
    for number in range(20):
        start = start_of(number, terminal=(24, 80))
        made.expect(start)
        made.open(start, taken(tmp_path), account=None).close()
    yield made
    for number in range(20):
        made.hang_up(attempt(number))


def answered(inputs: Inputs) -> list[Fed]:
    """Return the answers to come after one more turn."""
    inputs.write_on()
    return inputs.answers


def test_a_piece_of_many_frames_has_many_turns_and_is_taken_whole(inputs: Inputs) -> None:
    inputs.feed(Feed(attempt=attempt(1), number=7, offset_bytes=0, content=SIZES, is_end=False))
    turns = 0
    while not answered(inputs):
        turns += 1
    (answer,) = inputs.answers
    assert (answer.number, answer.offset_bytes, answer.is_closed) == (7, len(SIZES), False)
    assert turns > 10


def test_whoever_types_waits_for_one_turn_of_few_others(inputs: Inputs) -> None:
    for number in range(19):
        inputs.feed(Feed(attempt=attempt(number), number=number, offset_bytes=0, content=SIZES, is_end=False))
    inputs.feed(Feed(attempt=attempt(19), number=19, offset_bytes=0, content=SIZES[:70], is_end=False))
    turns = 0
    while not any(each.number == 19 for each in answered(inputs)):
        turns += 1
    assert turns <= 3
    assert len(inputs.answers) == 1


@pytest.mark.parametrize("is_end", [False, True])
def test_a_piece_that_arrives_after_nobody_reads_any_more_is_answered_so(tmp_path: Path, *, is_end: bool) -> None:
    inputs, start = Inputs(Terminals()), start_of(1, terminal=None)
    inputs.expect(start)
    # The process, which has this end of the pipe, ends at once.
    inputs.open(start, taken(tmp_path), account=None).close()
    for number in (1, 2):
        inputs.feed(Feed(attempt=attempt(1), number=number, offset_bytes=0, content=b"y\n" * 9, is_end=is_end))
    assert [(each.number, each.offset_bytes, each.is_closed) for each in inputs.answers] == [(1, 0, True), (2, 0, True)]
