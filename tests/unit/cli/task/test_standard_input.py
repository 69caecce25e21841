"""What `run` does with its standard input while attempts come and go (MESSIAHS 5.3.3)."""

import os
from pathlib import Path

import pytest

from messiahs.cli.task.kept_input import KEPT_BYTES
from messiahs.cli.task.standard_input import InputLostError, StandardInput, feed
from messiahs.client.connection import Document
from messiahs.client.module import ModuleClient
from tests.unit.client.local_api_peer import Peer, StartPeer

CONTENT = b"all that the task is to read"


def state(*, attempt: int, received: int = 0, closed: bool = False, ended: bool = False) -> tuple[int, Document]:
    """Answer that an attempt has received and taken so many bytes, and whether it takes no more."""
    taken = {"attempt": attempt, "received": received, "taken": received, "closed": closed or ended, "ended": ended}
    return 200, {**taken, "problem": "", "refusal": ""}


def fed(peer: Peer, *, requests: int, kept_bytes: int = KEPT_BYTES) -> list[str]:
    """Feed a task from a pipe that is at its end; return the pieces of these requests."""
    reader, writer = os.pipe()
    os.write(writer, CONTENT)
    os.close(writer)
    try:
        with ModuleClient(peer.socket_path) as module:
            feed(
                module,
                "left.1",
                source=StandardInput(reader, kept_bytes=kept_bytes),
                has_ended=lambda: len(peer.asked) >= requests,
                report=print,
            )
    finally:
        os.close(reader)
    return [str(body["piece"]) for _, _, body in peer.asked]


def test_an_attempt_that_ended_before_it_took_anything_leaves_all_to_the_next_one(start_peer: StartPeer) -> None:
    peer = start_peer(
        state(attempt=1, ended=True),
        state(attempt=1, ended=True),
        state(attempt=2),
        state(attempt=2, received=len(CONTENT)),
    )
    assert fed(peer, requests=4) == ["", "", "", CONTENT.decode()]


@pytest.mark.parametrize("offset", [len(CONTENT) + 1, 1 << 62, (1 << 63) - 1])
def test_a_file_has_nothing_beyond_its_end_whatever_a_machine_says(tmp_path: Path, offset: int) -> None:
    (tmp_path / "in").write_bytes(CONTENT)
    with (tmp_path / "in").open("rb") as file:
        source = StandardInput(file.fileno())
        assert not source.go_to(offset)
        assert source.go_to(len(CONTENT) - 4)
        assert source.read() == CONTENT[-4:]


LOST_AFTER_ALL = (
    state(attempt=1),
    state(attempt=1, received=len(CONTENT)),
    state(attempt=1, received=len(CONTENT), ended=True),
    state(attempt=2),
    state(attempt=2, received=len(CONTENT)),
)
"""The first attempt takes everything, and is lost then."""


def test_what_an_attempt_took_from_a_pipe_is_brought_to_the_next_one_again(start_peer: StartPeer) -> None:
    assert fed(start_peer(*LOST_AFTER_ALL), requests=5) == ["", CONTENT.decode(), "", "", CONTENT.decode()]


def test_what_is_longer_than_the_limit_is_said_when_it_is_read_and_not_brought_in_part(
    start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputLostError, match=r"cannot be read again \(it is longer than 4 B\)"):
        fed(start_peer(*LOST_AFTER_ALL), requests=9, kept_bytes=4)
    said = "if the task has to run again, it cannot get this standard input again: it is longer than 4 B\n"
    assert capsys.readouterr().out == said


def test_a_pipe_that_was_given_up_is_never_empty_input_of_the_next_attempt(start_peer: StartPeer) -> None:
    peer = start_peer(state(attempt=1, closed=True), state(attempt=1, closed=True), state(attempt=2))
    with pytest.raises(InputLostError, match=r"cannot be read again \(the task had closed it\)"):
        fed(peer, requests=9)
