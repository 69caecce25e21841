"""What `run` does with its standard input while attempts come and go (MESSIAHS 5.3.3)."""

import os

import pytest

from messiahs.cli.task.standard_input import InputLostError, StandardInput, feed
from messiahs.client.connection import Document
from messiahs.client.module import ModuleClient
from tests.unit.client.local_api_peer import Peer, StartPeer

CONTENT = b"all that the task is to read"


def state(*, attempt: int, received: int = 0, closed: bool = False, ended: bool = False) -> tuple[int, Document]:
    """Answer that an attempt has received and taken so many bytes, and whether it takes no more."""
    taken = {"attempt": attempt, "received": received, "taken": received, "closed": closed or ended, "ended": ended}
    return 200, {**taken, "problem": "", "refusal": ""}


def fed(peer: Peer, *, requests: int) -> list[str]:
    """Feed a task from a pipe that is at its end; return the pieces of these requests."""
    reader, writer = os.pipe()
    os.write(writer, CONTENT)
    os.close(writer)
    try:
        with ModuleClient(peer.socket_path) as module:
            feed(
                module,
                "left.1",
                source=StandardInput(reader),
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


def test_what_an_attempt_took_from_a_pipe_is_not_brought_to_the_next_one_in_part(start_peer: StartPeer) -> None:
    peer = start_peer(
        state(attempt=1),
        state(attempt=1, received=len(CONTENT)),
        state(attempt=1, received=len(CONTENT), ended=True),
        state(attempt=2),
    )
    with pytest.raises(InputLostError, match="cannot be read again"):
        fed(peer, requests=9)


def test_a_pipe_that_was_given_up_is_never_empty_input_of_the_next_attempt(start_peer: StartPeer) -> None:
    peer = start_peer(state(attempt=1, closed=True), state(attempt=1, closed=True), state(attempt=2))
    with pytest.raises(InputLostError, match="cannot be read again"):
        fed(peer, requests=9)
