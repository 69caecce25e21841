"""Sources that an event loop feeds and a thread reads."""

import asyncio

from messiahs.channel.byte_streams.byte_threads import FrameSource


def test_an_empty_piece_is_not_the_end_of_a_source() -> None:
    async def scene() -> None:
        source, buffer = FrameSource(), memoryview(bytearray(8))
        await source.put(b"")
        await source.put(b"rest")
        assert source.read_into(buffer) == len(b"rest")
        source.end()
        assert source.read_into(buffer) == 0

    asyncio.run(scene())
