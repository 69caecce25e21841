"""The effect of SIGHUP on a process with and without a terminal."""

import asyncio
import os
import pty
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from messiahs.daemon.process.hangup import Held, hold_hangups, on_hangup


@contextmanager
def _standard_input(descriptor: int) -> Iterator[None]:
    before = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def _hold_one() -> None:
    hold_hangups()
    # To this thread only, because other threads of this process do not block it.
    signal.pthread_kill(threading.get_ident(), signal.SIGHUP)


async def _heard(closes: int | None = None, *, is_sent: bool = False) -> list[str]:
    heard: list[str] = []
    came = asyncio.Event()

    def note(what: str) -> None:
        heard.append(what)
        came.set()

    on_hangup(lambda: note("reload"), lambda: note("stop"))
    try:
        if closes is not None:
            os.close(closes)
        if not is_sent:
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


def test_what_was_held_is_heard_as_soon_as_somebody_listens() -> None:
    _hold_one()
    null = os.open(os.devnull, os.O_RDONLY)
    with _standard_input(null):
        assert asyncio.run(_heard(is_sent=True)) == ["reload"]
    os.close(null)


def test_a_call_that_was_asked_for_twice_too_early_is_made_once_and_later_ones_at_once() -> None:
    calls: list[str] = []
    held = Held()
    held()
    held()
    held.release(lambda: calls.append("made"))
    assert len(calls) == 1
    held()
    assert len(calls) == 2


def test_a_call_that_nobody_asked_for_is_not_made() -> None:
    calls: list[str] = []
    Held().release(lambda: calls.append("made"))
    assert calls == []


def test_with_a_terminal_that_was_closed_while_hangups_were_held_the_process_ends() -> None:
    user, terminal = pty.openpty()
    with _standard_input(terminal):
        os.close(user)
        _hold_one()
        assert asyncio.run(_heard(is_sent=True)) == ["stop"]
    os.close(terminal)


def test_with_a_terminal_that_was_closed_the_process_ends() -> None:
    user, terminal = pty.openpty()
    with _standard_input(terminal):
        assert asyncio.run(_heard(closes=user)) == ["stop"]
    os.close(terminal)
