"""How the two sides of a pipe that is to be passed on begin it (MESSIAHS 5.3.3)."""

import asyncio

import pytest

from messiahs.channel import pipes
from messiahs.channel.memory import MemoryStream
from messiahs.channel.pipes import confirm, confirmed
from messiahs.errors import ChannelError
from messiahs.wire.codec import pipe_content_to_bytes


def test_a_hop_that_answers_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_OPENING_SECONDS", 0.01)
    with pytest.raises(ChannelError, match="the hop does not answer"):
        asyncio.run(confirmed(MemoryStream()))


def test_a_hop_that_sends_something_before_its_answer_is_refused() -> None:
    async def scene() -> None:
        stream = MemoryStream()
        await stream.write(pipe_content_to_bytes(b"too early"))
        with pytest.raises(ChannelError, match="the hop passed nothing on"):
            await confirmed(stream)
        await confirm(stream)
        await confirmed(stream)

    asyncio.run(scene())
