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


@pytest.fixture
def inputs(tmp_path: Path) -> Iterator[Inputs]:
    """Make the inputs of twenty attempts that have terminals."""
    terminals = Terminals()
    made = Inputs(terminals)
    for number in range(20):
        start = Start(
            attempt=attempt(number),
            claim=ClaimId(executor=ORIGIN, epoch=Epoch(1), number=1),
            argv=("cat",),
            env=(),
            places=1,
            limit_ns=None,
            lease_until=0,
            takes_stdin=True,
            terminal=(24, 80),
        )
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        made.expect(start)
        made.open(start, Taken("folder", log, os.dup(log)), account=None).close()
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
