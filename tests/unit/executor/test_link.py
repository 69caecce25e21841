"""The connection of a daemon with its starter, over a real socket."""

import asyncio
from pathlib import Path

from messiahs.executor.os_process.link import StarterLink


def test_whoever_waits_no_more_for_a_hello_leaves_no_connection(tmp_path: Path) -> None:
    async def scene() -> None:
        is_met = asyncio.Event()
        has_ended = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            is_met.set()
            assert await reader.read() == b""
            has_ended.set()
            writer.close()

        server = await asyncio.start_unix_server(say_nothing, tmp_path / "s")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        waiting = asyncio.create_task(StarterLink.greeted(reader, writer))
        await is_met.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        async with asyncio.timeout(20):
            await has_ended.wait()
        assert waiting.cancelled()
        assert writer.is_closing()
        server.close()
        await server.wait_closed()

    asyncio.run(scene())
