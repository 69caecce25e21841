"""D-autonomy: a neighbor may be another machine with other software than anybody here has seen (MESSIAHS 4.2)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from secrets import token_hex
from typing import Final

import pytest

from messiahs.channel.contract import Peer
from messiahs.client import Submission
from messiahs.core.interface.messages import AttemptStatus, TaskState, TaskStatus
from messiahs.core.model.task_files import Output
from messiahs.wire.codec import ReadChunk, ReadRequest, chunk_to_bytes, transfer_and_files_from_bytes
from tests.autonomy.scene import Scene
from tests.autonomy.seat import seated
from tests.autonomy.users import SEAT_ARCH
from tests.live.conftest import Federation
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.live

_VAX: Final[dict[str, int | str]] = {
    "nproc": 1,
    "slots": 1,
    "free_slots": 1,
    "arch": SEAT_ARCH,
    "os": "Ultrix",
    "byte_order": "little",
    "word_bits": 32,
    "floating_point": "D_floating",
}


def test_a_task_runs_at_a_machine_of_an_unknown_kind_with_software_of_its_own(scene: Scene) -> None:
    """The seat is no daemon of this project: only messages make it a neighbor."""
    word = token_hex(8)
    requirement = f'$arch eq "{SEAT_ARCH}" and $word_bits = 32 and $floating_point eq "D_floating"'

    async def play() -> None:
        async with seated(scene, _VAX, release="a release of others") as seat:
            seat.module.reads = _prints(word)
            for who, place in scene.users.places.items():
                asked = Submission(argv=("print", word), requirement=requirement)
                task = await asyncio.to_thread(_submit, place, asked)
                accept = await seat.module.grant(hop_address=seat.module.address)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    transfer, _ = transfer_and_files_from_bytes(await seat.module.transfers.get())
                (bound,) = transfer.tasks
                assert bound.command.argv == asked.argv, who
                outputs = (Output(name="stdout", size_bytes=len(word)),)
                end = AttemptStatus(attempt=bound.attempt, state=TaskState.FINISHED, exit_code=0, outputs=outputs)
                await seat.module.send(TaskStatus(claim=accept.claim, attempts=(end,), window=1))
                assert await asyncio.to_thread(_result, place, task) == (0, word.encode()), who
            await asyncio.to_thread(scene.users.serve)

    asyncio.run(play())


def _prints(word: str) -> Callable[[Peer, ReadRequest], AsyncGenerator[bytes, None]]:
    async def read(_: Peer, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        content = word.encode()[request.offset_bytes :]
        yield chunk_to_bytes(ReadChunk(content=content))
        yield chunk_to_bytes(ReadChunk(sha256=sha256(word.encode()).digest()))

    return read


def _submit(place: Federation, submission: Submission) -> str:
    with place.client() as client:
        return client.submit(submission)


def _result(place: Federation, task: str) -> tuple[int, bytes]:
    with place.client() as client:
        ended = client.wait(task, timeout=PATIENCE_SECONDS)
        return ended["exit_code"], b"".join(client.logs(task))
