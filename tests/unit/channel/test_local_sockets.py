"""Sockets of this machine at which connections through pipes begin."""

import asyncio
from pathlib import Path

import pytest

from messiahs.channel.certificates.pinning import Connected
from messiahs.channel.local_sockets import LocalServers, SocketFolder, connected
from messiahs.errors import ChannelError
from tests.descriptors import no_free_descriptor


def test_an_address_can_be_had_after_no_file_could_be_opened(tmp_path: Path) -> None:
    async def serve(key: str, connection: Connected) -> None:
        connection[1].write(key.encode())
        await connection[1].drain()

    async def main() -> bytes:
        folder = SocketFolder(tmp_path / "sockets")
        folder.address()
        servers = LocalServers(folder, serve)
        try:
            with no_free_descriptor(), pytest.raises(ChannelError, match="Too many open files"):
                await servers.address_of("cs")
            reader, writer = await connected(await servers.address_of("cs"))
            try:
                return await reader.read()
            finally:
                writer.close()
        finally:
            await servers.stop()
            folder.remove()

    assert asyncio.run(main()) == b"cs"
