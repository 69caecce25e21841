"""A neighbor of the module under test draws tasks to itself and is silent; they end elsewhere (MESSIAHS 4.2)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import ASK_LIMIT
from messiahs.core.interface.messages import AttemptStatus, ClaimEnd, SchedRequest, TaskState, TaskStatus
from messiahs.core.model.instants import SECOND
from messiahs.wire.codec import transfer_and_files_from_bytes
from tests.autonomy.scene import Scene
from tests.autonomy.seat import Seat, seated
from tests.live.hostile_module import MACHINE
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.live

_LEASE_NS: Final = 5 * SECOND


async def _never_answer(seat: Seat, is_asked: asyncio.Event) -> None:
    """Answer no request."""
    await seat.module.next_of(SchedRequest)
    is_asked.set()


async def _grant(seat: Seat, is_asked: asyncio.Event) -> None:
    """Grant a place for each request, and report nothing of the tasks that come.

    The lease is short: within its own site, a machine that grants a long one keeps its tasks that long.
    """
    while True:
        await seat.module.grant(hop_address=seat.module.address, lease_ns=_LEASE_NS)
        is_asked.set()


async def _lose(seat: Seat, is_asked: asyncio.Event) -> None:
    """Grant places, and report each task that comes as lost."""
    granting = asyncio.create_task(_grant(seat, is_asked))
    try:
        while True:
            transfer, _ = transfer_and_files_from_bytes(await seat.module.transfers.get())
            lost = (
                AttemptStatus(attempt=each.attempt, state=TaskState.REVOKED, cause=Cause.LOST)
                for each in transfer.tasks
            )
            await seat.module.send(TaskStatus(claim=transfer.claim, attempts=tuple(lost), window=1))
    finally:
        granting.cancel()


CONDUCTS: Final[dict[str, Callable[[Seat, asyncio.Event], Awaitable[None]]]] = {
    "answers no request": _never_answer,
    "grants and reports nothing": _grant,
    "grants and loses": _lose,
}


@pytest.mark.parametrize("conduct", CONDUCTS)
def test_tasks_that_a_neighbor_draws_to_itself_and_does_not_run_end_elsewhere(scene: Scene, conduct: str) -> None:
    """It shows the best machine there is, and more free slots than all others have.

    It also keeps the free places of the module under test until it is asked, so that tasks can only go to itself.
    """
    best = {**MACHINE, "speed": 10**6, "slots": 64}

    async def play() -> None:
        async with seated(scene, best) as seat:
            await until(lambda: seat.module.name in scene.subject.vectors()["views"])
            kept, is_asked = await seat.granted(places=ASK_LIMIT), asyncio.Event()
            conducting = asyncio.ensure_future(CONDUCTS[conduct](seat, is_asked))
            serving = asyncio.create_task(asyncio.to_thread(scene.users.serve_many))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await is_asked.wait()
            await seat.module.send(ClaimEnd(claim=kept.claim))
            await serving
            conducting.cancel()
            await asyncio.gather(conducting, return_exceptions=True)

    with scene.users.working():
        asyncio.run(play())
