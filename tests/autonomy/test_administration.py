"""A-autonomy: what an administrator changes at the module under test needs no message of anybody (MESSIAHS 4.2)."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import randbelow

import pytest

from messiahs.client import Submission
from tests.autonomy.scene import Scene, is_running
from tests.autonomy.seat import seated
from tests.autonomy.users import ELSEWHERE
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.live

_CLOSED = "closed for the holidays"


def test_every_change_takes_effect_while_all_its_neighbors_are_silent(scene: Scene) -> None:
    mark = f"9{randbelow(10**8)}"

    async def play() -> None:
        async with seated(scene) as seat:
            accept, task = await seat.granted(), seat.task("sleep", mark)
            await seat.bring(seat.stream(accept), accept, task)
            await until(lambda: is_running(mark))
            # From here on the seat sends nothing.
            with _frozen(scene):
                await asyncio.to_thread(_change_everything, scene)
                await until(lambda: not is_running(mark))

    with scene.users.working():
        asyncio.run(play())
        scene.restore()
    scene.begin()
    scene.users.serve()


def _change_everything(scene: Scene) -> None:
    before, after = (
        # Tasks of one shape would share a claim, which a new policy does not end.
        Submission(argv=("true",), requirement=ELSEWHERE, tdv={"shape": shape}, waits=False)
        for shape in ("before", "after")
    )
    with scene.subject.client() as client:
        assert client.wait(client.submit(before), timeout=PATIENCE_SECONDS)["state"] == "finished"
        closed = f'policy "closed"; accept from users {{ require $cpus > 99 else "{_CLOSED}"; }}'
        assert client.load_policy(closed)["problems"] == []
        assert client.wait(client.submit(after), timeout=PATIENCE_SECONDS)["state"] == "denied"
        client.drain(reason=_CLOSED)
        assert client.drain_state()["drain"]["reason"] == _CLOSED
        client.drain(is_on=False)
        assert client.drain_state()["drain"] is None
        (attempt,) = scene.from_the_seat()
        assert client.revoke(attempt, kill=True) == [attempt]
        client.shut_off(scene.seat.name, reason=_CLOSED)
        assert scene.neighbor()["state"] == "shut_off"


@contextmanager
def _frozen(scene: Scene) -> Iterator[None]:
    """Stop the daemon of the friend for a while."""
    pid = scene.friend.pid(scene.friend.module, "daemon")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
