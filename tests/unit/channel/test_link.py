"""One connection with a neighbor: what is sent after its end."""

import asyncio
from typing import cast

from messiahs.channel.contract import Connection, Counters
from messiahs.channel.link import Link
from messiahs.core.interface.messages import TaskStatusQuery
from tests.contract.channel_modules import CLAIM, CS, NYNEVE, Recorded, attempt


def test_a_message_after_the_end_is_not_encoded() -> None:
    too_large = TaskStatusQuery(claim=CLAIM, attempts=tuple(map(attempt, range(100_000))))

    async def act() -> None:
        counters = Counters()
        link = Link(CS, cast("Connection", None), Recorded(name=NYNEVE).callbacks(), counters)
        link.send_control(too_large)
        assert counters.dropped == 1
        link.end("the neighbor does not read its messages")
        link.send_control(too_large)
        assert counters.dropped == 1

    asyncio.run(act())
