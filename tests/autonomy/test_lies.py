"""A neighbor of the module under test lies about tasks of others, and changes nothing for these (MESSIAHS 4.2)."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import pytest

from messiahs.client import Submission
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import (
    AttemptStatus,
    ControlMessage,
    TaskKill,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
)
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from tests.autonomy.scene import Scene
from tests.autonomy.seat import seated
from tests.autonomy.users import ONLY_THERE
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.live

Lie = Callable[["Victims"], Iterator[ControlMessage]]
_GUESSED: Final = 60
"""Numbers of submissions that a liar tries, up to the one after the victim's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """What a liar knows about tasks of others: the claims that it has on both sides, and names of attempts."""

    own: ClaimId
    granted: ClaimId
    attempts: tuple[AttemptId, ...]

    @property
    def both(self) -> tuple[ClaimId, ClaimId]:
        """Its claims."""
        return self.own, self.granted


def _ends(victims: Victims) -> Iterator[ControlMessage]:
    """Report tasks of others as ended, in claims that did not bring them."""
    for state, claim in product((TaskState.FINISHED, TaskState.ABORTED, TaskState.REVOKED), victims.both):
        ended = (AttemptStatus(attempt=each, state=state, exit_code=7) for each in victims.attempts)
        yield TaskStatus(claim=claim, attempts=tuple(ended), window=1, renewal=1)


def _kills(victims: Victims) -> Iterator[ControlMessage]:
    """Kill, move and acknowledge tasks of others."""
    for claim in victims.both:
        yield TaskKill(claim=claim, attempts=victims.attempts)
        yield TaskKill(claim=claim, attempts=victims.attempts, is_move=True, is_barring=True)
        yield TaskRevoke(claim=claim, attempts=victims.attempts, text="a lie")
        yield TaskStatusAck(claim=claim, taken=victims.attempts, unbound=victims.attempts, moving=victims.attempts)


LIES: Final[dict[str, Lie]] = {"reports their ends": _ends, "kills them": _kills}


@pytest.mark.parametrize("lie", LIES)
def test_a_neighbor_that_lies_about_tasks_of_others_changes_nothing_for_them(scene: Scene, lie: str) -> None:
    async def play(victim: str) -> None:
        last = int(victim.rpartition(".")[2]) + 1
        async with seated(scene) as seat:
            hello = await seat.module.next_of(Hello)
            assert isinstance(hello, Hello)
            own = await seat.granted()
            # A task of the local user is bound to the liar, so that it has a claim in the other direction, too.
            task = await asyncio.to_thread(_submit, scene, Submission(argv=("true",), requirement=ONLY_THERE))
            granted = await seat.module.grant(hop_address=seat.module.address)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await seat.module.transfers.get()
            names = (TaskId(scene.name, hello.epoch, number) for number in range(max(1, last - _GUESSED), last + 1))
            attempts = tuple(AttemptId(name, 1) for name in names)
            await seat.module.send(*LIES[lie](Victims(own=own.claim, granted=granted.claim, attempts=attempts)))
            # Control messages are handled in their order; no machine fulfils this request, so it takes no place.
            await seat.asked(seat.request(requirement="$slots > 999999"))
            await asyncio.to_thread(scene.users.serve)
            with scene.subject.client() as client:
                client.cancel(task)

    with scene.users.working() as tasks:
        asyncio.run(play(tasks[0]))


def _submit(scene: Scene, submission: Submission) -> str:
    with scene.subject.client() as client:
        return client.submit(submission)
