"""Turns of local users without a driver: whoever waits has them soon."""

import asyncio
import time

from messiahs.core.model.instants import SECOND
from messiahs.daemon.host.user_turns import UserTurns


def free_turns(kind: type[UserTurns] = UserTurns) -> UserTurns:
    """Return turns that are served one by one while somebody waits."""
    is_due = False

    def serve() -> None:
        nonlocal is_due
        is_due = False
        turns.begin_step()
        now = time.monotonic_ns()
        work = turns.queue.next(now)
        if work is not None:
            turns.queue.charge(work.source, work.begun_ns, now)
            turns.queue.finish(work)
        wait_ns = turns.queue.ready_in(now)
        if wait_ns is not None:
            serve_in(wait_ns)

    def serve_in(wait_ns: int) -> None:
        nonlocal is_due
        if not is_due:
            is_due = True
            asyncio.get_running_loop().call_later(wait_ns / SECOND, serve)

    turns = kind(on_waiting=lambda: serve_in(0), on_active=lambda: None)
    return turns
