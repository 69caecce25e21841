"""A neighbor of the module under test sends again what it has ever sent, and nothing happens (MESSIAHS 4.2)."""

import asyncio
from secrets import randbelow
from typing import Final

import pytest

from messiahs.client import Submission
from tests.autonomy.recorded_daemon import frames_of, recorded_daemon
from tests.autonomy.scene import Scene, is_running
from tests.autonomy.seat import Seat, seated
from tests.autonomy.users import ELSEWHERE
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.live

_CONTROL: Final = "messiahs.wire.v1.ControlBatch"
_VECTOR: Final = "messiahs.wire.v1.StatusVector"
_TRANSFER: Final = "messiahs.wire.v1.TaskTransfer"
_Frames = list[tuple[str, bytes]]


def test_frames_of_a_link_that_are_sent_again_start_nothing_and_change_nothing_for_others(scene: Scene) -> None:
    marks = (f"9{randbelow(10**8)}", f"9{randbelow(10**8)}")
    with recorded_daemon(scene.seat):
        _leave_tasks(scene, marks)
    eventually(lambda: scene.neighbor()["state"] != "linked")
    frames = frames_of(scene.seat)
    assert all(_of(frames, kind) for kind in (_CONTROL, _VECTOR, _TRANSFER))
    before = _started(scene)
    assert before > 0

    async def play() -> None:
        async with seated(scene, hello=_of(frames, _CONTROL)[0]) as seat:
            # There is room for an old task that starts, and for the new one beside it.
            accept, task = await seat.granted(places=2), seat.task("true")
            for _ in range(2):
                await _replay(seat, frames)
            await seat.bring(seat.stream(accept), accept, task)
            await seat.finished(accept, task)
            await asyncio.to_thread(scene.users.serve)

    with scene.users.working():
        asyncio.run(play())
        eventually(lambda: _started(scene) > before)
        assert (_started(scene), [mark for mark in marks if is_running(mark)]) == (before + 1, [])


def _leave_tasks(scene: Scene, marks: tuple[str, str]) -> None:
    """Run one task of the seat at the module under test to its end, and one until it is cancelled."""
    with scene.module_of_the_seat.client() as client:
        done = client.submit(Submission(argv=("sh", "-c", "exit 0", marks[0]), requirement=ELSEWHERE))
        endless = client.submit(Submission(argv=("sleep", marks[1]), requirement=ELSEWHERE))
        assert client.wait(done, timeout=PATIENCE_SECONDS)["exit_code"] == 0
        eventually(lambda: is_running(marks[1]))
        client.cancel(endless)
        client.wait(endless, timeout=PATIENCE_SECONDS)


def _started(scene: Scene) -> int:
    """Return how many attempts of the seat were ever started at the module under test, by its audit log."""
    with scene.subject.client() as client:
        lines = list(client.decisions(since="2000-01-01T00:00:00Z", neighbor=scene.seat.name, kind="task"))
    return sum(len(each["tasks"]) for each in lines if each["what"] == "started")


def _of(frames: _Frames, kind: str) -> list[bytes]:
    return [content for name, content in frames if name == kind]


async def _replay(seat: Seat, frames: _Frames) -> None:
    """Send all messages of a kind on a channel of that kind, in their order."""
    assert seat.module.connection is not None
    address = seat.module.neighbor.address
    assert address is not None
    updates = await seat.module.connection.updates()
    transfers = seat.module.transport.open_transfers(seat.module.neighbor.neighbor.system, address)
    ways = {_CONTROL: seat.module.connection.control, _VECTOR: updates, _TRANSFER: transfers}
    for name, content in frames:
        if name in ways:
            await ways[name].write(content)
