"""The feed of endings: cursors, gaps, and who is woken."""

import asyncio

import pytest

from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.daemon.host.endings import PAGE, REMEMBERED, Endings


def task(number: int) -> TaskId:
    return TaskId(system=SystemId("left"), epoch=Epoch(1), number=number, member=0)


def test_what_ends_after_a_cursor_is_returned_once_in_order() -> None:
    async def follow() -> None:
        endings = Endings()
        endings.note(task(1))
        page = await endings.after("", 0)
        assert (page.tasks, page.has_gap) == ((), False)
        for number in (2, 3):
            endings.note(task(number))
        page = await endings.after(page.cursor, 0)
        assert (page.tasks, page.has_gap) == ((task(2), task(3)), False)
        assert (await endings.after(page.cursor, 0)).tasks == ()

    asyncio.run(follow())


def test_who_waits_is_woken_by_the_next_ending() -> None:
    async def follow() -> None:
        endings = Endings()
        cursor = (await endings.after("", 0)).cursor
        waiting = [asyncio.create_task(endings.after(cursor, 600)) for _ in range(3)]
        await asyncio.sleep(0)
        endings.note(task(1))
        assert [page.tasks for page in await asyncio.gather(*waiting)] == [(task(1),)] * 3

    asyncio.run(follow())


@pytest.mark.parametrize("cursor", ["0-0", "nonsense", "-", "\N{DIGIT ONE}", f"{'f' * 16}-1"])
def test_a_cursor_of_another_process_has_a_gap(cursor: str) -> None:
    page = asyncio.run(Endings().after(cursor, 600))
    assert (page.tasks, page.has_gap) == ((), True)


def test_who_comes_too_late_has_a_gap_and_a_long_feed_comes_in_pages() -> None:
    async def follow() -> None:
        endings = Endings()
        cursor = (await endings.after("", 0)).cursor
        for number in range(1, REMEMBERED + 1):
            endings.note(task(number))
        page = await endings.after(cursor, 0)
        assert (len(page.tasks), page.has_gap) == (PAGE, False)
        assert (await endings.after(page.cursor, 0)).tasks[0] == task(PAGE + 1)
        endings.note(task(REMEMBERED + 1))
        assert (await endings.after(cursor, 0)).has_gap
        assert not (await endings.after(page.cursor, 0)).has_gap

    asyncio.run(follow())
