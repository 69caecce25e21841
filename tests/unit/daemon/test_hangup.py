"""What SIGHUP means to a process with and without a terminal."""

import asyncio
import os
import pty
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from messiahs.daemon.hangup import on_hangup


@contextmanager
def _standard_input(descriptor: int) -> Iterator[None]:
    before = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


async def _heard(closes: int | None = None) -> list[str]:
    heard: list[str] = []
    came = asyncio.Event()

    def note(what: str) -> None:
        heard.append(what)
        came.set()

    on_hangup(lambda: note("reload"), lambda: note("stop"))
    try:
        if closes is not None:
            os.close(closes)
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(60):
            await came.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    return heard


def test_without_a_terminal_everything_is_read_again() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    with _standard_input(null):
        assert asyncio.run(_heard()) == ["reload"]
    os.close(null)


def test_with_a_terminal_that_is_there_everything_is_read_again() -> None:
    user, terminal = pty.openpty()
    with _standard_input(terminal):
        assert asyncio.run(_heard()) == ["reload"]
    os.close(user)
    os.close(terminal)


def test_with_a_terminal_that_was_closed_the_process_ends() -> None:
    user, terminal = pty.openpty()
    with _standard_input(terminal):
        assert asyncio.run(_heard(closes=user)) == ["stop"]
    os.close(terminal)
