"""Requests for the audit log of decisions: many of one account keep no other account waiting."""

import asyncio

from messiahs.daemon.api.decisions import Looks


def test_followers_of_one_account_look_one_by_one_with_a_pause_that_others_do_not_wait_for() -> None:
    async def scene() -> None:
        looks, had = Looks(), []
        at_once, may_end = 0, asyncio.Event()

        async def look(uid: int, pause_seconds: float = 0.0) -> None:
            async with looks.turn(uid, pause_seconds=pause_seconds):
                had.append(uid)

        async def look_long() -> None:
            nonlocal at_once
            async with looks.turn(3, pause_seconds=0.0):
                at_once += 1
                await may_end.wait()

        waiting = [asyncio.create_task(look(1, 3_600.0)) for _ in range(10)]
        long = [asyncio.create_task(look_long()) for _ in range(10)]
        await asyncio.sleep(0)
        for _ in range(5):
            await look(2)
        assert (had, at_once) == ([2] * 5, 1)
        may_end.set()
        await asyncio.gather(*long)
        assert at_once == 10
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(scene())
