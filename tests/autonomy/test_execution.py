"""E-autonomy: the module under test decides which tasks it runs, and may end those that it accepted (MESSIAHS 4.2)."""

import asyncio
from dataclasses import replace
from secrets import randbelow, token_bytes

import pytest

from messiahs.core.interface.messages import ClaimEnd, SchedDeny, TaskState
from messiahs.core.model.ids import Ticket
from tests.autonomy.scene import Scene, is_running
from tests.autonomy.seat import seated
from tests.waiting import until

pytestmark = pytest.mark.live

_CLOSED = "closed for the holidays"


def test_it_refuses_a_request_in_the_words_of_its_policy_and_says_no_more(scene: Scene) -> None:
    scene.load(f'accept from "{{seat}}" {{{{ require $cpus > 99 else "{_CLOSED}"; }}}}')

    async def play() -> None:
        async with seated(scene) as seat:
            answer = await seat.asked(seat.request())
            assert isinstance(answer, SchedDeny), answer
            (reason,) = answer.reasons
            assert (reason.text, reason.rule, reason.why) == (_CLOSED, "", "")

    asyncio.run(play())
    scene.users.serve()


def test_it_runs_nothing_that_is_brought_without_its_grant(scene: Scene) -> None:
    async def play() -> list[str]:
        async with seated(scene) as seat:
            ended, other, accept = [await seat.granted() for _ in range(3)]
            await seat.module.send(ClaimEnd(claim=ended.claim))
            unknown = replace(accept, claim=accept.claim._replace(number=accept.claim.number ^ 1))
            wrong = (unknown, replace(other, ticket=Ticket(token_bytes(16))), ended)
            marks = [f"9{randbelow(10**8)}" for _ in wrong]
            # What is brought on one stream is handled in its order.
            stream = seat.stream(accept)
            for each, mark in zip(wrong, marks, strict=True):
                await seat.bring(stream, each, seat.task("sleep", mark))
            task = seat.task("true")
            await seat.bring(stream, accept, task)
            assert (await seat.finished(accept, task)).state is TaskState.FINISHED
            assert scene.from_the_seat() == []
            # Unused places would be kept for a while.
            await seat.module.send(*(ClaimEnd(claim=each.claim) for each in (other, accept)))
            # No machine fulfils this request; its answer shows that what was sent before has arrived.
            await seat.asked(seat.request(requirement="$slots > 999999"))
            return marks

    marks = asyncio.run(play())
    assert [mark for mark in marks if is_running(mark)] == []
    scene.users.serve()


@pytest.mark.parametrize("kill", [False, True], ids=["with the grace", "at once"])
def test_it_revokes_a_task_that_it_had_accepted_although_its_origin_says_nothing(scene: Scene, *, kill: bool) -> None:
    mark = f"9{randbelow(10**8)}"

    async def play() -> None:
        async with seated(scene) as seat:
            accept = await seat.granted()
            task = seat.task("sleep", mark)
            stream = seat.stream(accept)
            await seat.bring(stream, accept, task)
            await seat.reported(task.attempt, TaskState.EXECUTING)
            await until(lambda: is_running(mark))
            await asyncio.to_thread(_revoke, scene, kill=kill)
            await until(lambda: not is_running(mark))
            ended = await seat.reported(task.attempt, TaskState.REVOKED)
            assert ended.text == _CLOSED
            # Whoever brings the same attempt again does not bring it back.
            await seat.bring(stream, accept, task)
            await seat.finished(accept, task)
            await until(lambda: scene.from_the_seat() == [])
            assert not is_running(mark)

    with scene.users.working():
        asyncio.run(play())


def _revoke(scene: Scene, *, kill: bool) -> None:
    (attempt,) = scene.from_the_seat()
    with scene.subject.client() as client:
        assert client.revoke(attempt, kill=kill, reason=_CLOSED) == [attempt]
