"""Requests for the audit log of decisions: many of one account keep no other account waiting."""

import asyncio

from messiahs.daemon.api.decisions import ReadingTurns


def test_beside_many_followers_of_one_account_another_one_has_the_turn_after_the_next() -> None:
    async def scene() -> list[str]:
        turns, had = ReadingTurns(), []

        async def read(name: str, uid: int, *, pieces: int) -> None:
            for _ in range(pieces):
                async with turns.turn(uid, pause_seconds=0.0):
                    had.append(name)
                    await asyncio.sleep(0)

        many = [asyncio.create_task(read("follower", 1, pieces=1)) for _ in range(1_000)]
        await asyncio.sleep(0)
        await read("other", 2, pieces=3)
        begun = had.copy()
        await asyncio.gather(*many)
        assert had.count("follower") == 1_000
        return begun

    begun = asyncio.run(scene())
    assert begun.count("other") == 3
    assert begun.count("follower") <= 8


def test_followers_of_one_account_look_one_by_one_with_a_pause_that_others_do_not_wait_for() -> None:
    async def scene() -> None:
        turns, had = ReadingTurns(), []

        async def look(uid: int, pause_seconds: float) -> None:
            async with turns.turn(uid, pause_seconds=pause_seconds):
                had.append(uid)

        followers = [asyncio.create_task(look(1, 3_600.0)) for _ in range(10)]
        await asyncio.sleep(0)
        for _ in range(5):
            await look(2, 0.0)
        assert had == [1, 2, 2, 2, 2, 2]
        for each in followers:
            each.cancel()
        await asyncio.gather(*followers, return_exceptions=True)

    asyncio.run(scene())
