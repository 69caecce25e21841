"""Sockets of this machine at which connections through pipes begin and end, out of reach of other accounts.

gRPC opens and accepts connections only by an address, and has no say in who else may dial it. So the sockets are files
in a folder of the module that no other account may enter.
"""

import asyncio
import os
import secrets
import shutil
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, TypeVar

from messiahs.channel.certificates.pinning import Connected
from messiahs.errors import ChannelError
from messiahs.wire.codec import PIPE_PIECE_BYTES

_SCHEME: Final = "unix:"
_NAME_BYTES: Final = 16
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a peer (unix(7), SO_PEERCRED)."""
_Key = TypeVar("_Key")


class SocketFolder:
    """A folder for sockets, which exists from its first use to its end (mutable).

    What a process that was killed left there is removed first. Addresses name the folder by its descriptor in this
    process: unix(7) has room for 107 bytes, and a path may be longer.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def address(self) -> str:
        """Return a new address in the form that gRPC understands; a `ChannelError` without a folder."""
        return f"{_SCHEME}/proc/self/fd/{self._opened()}/{secrets.token_hex(_NAME_BYTES)}"

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        if self._path is not None and self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            shutil.rmtree(self._path, ignore_errors=True)

    def _opened(self) -> int:
        if self._path is None:
            raise ChannelError("this module has no folder for sockets")
        if self._descriptor is None:
            try:
                shutil.rmtree(self._path, ignore_errors=True)
                self._path.mkdir(mode=0o700)
                self._descriptor = os.open(self._path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                raise ChannelError(f"cannot make {self._path}: {error.strerror}") from error
        return self._descriptor


class LocalServers(Generic[_Key]):
    """Addresses of this machine that accept connections of this process only, and serve each with its key (mutable)."""

    def __init__(self, folder: SocketFolder, serve: Callable[[_Key, Connected], Coroutine[None, None, None]]) -> None:
        self._folder, self._serve = folder, serve
        self._servers: dict[_Key, asyncio.Server] = {}
        self._addresses: dict[_Key, str] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def address_of(self, key: _Key, /) -> str:
        """Return the address of a key, at which this process listens from now on; a `ChannelError` if it cannot."""
        if key not in self._addresses:
            address = self._addresses[key] = self._folder.address()

            def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.create_task(self._accept(key, (reader, writer)))
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)
                # Also if it is cancelled before it begins.
                task.add_done_callback(lambda _: writer.transport.abort())

            try:
                self._servers[key] = await asyncio.start_unix_server(serve, _path_of(address), limit=PIPE_PIECE_BYTES)
            except OSError as error:
                self.close(key)
                raise ChannelError(f"this module cannot listen at a socket of its own: {error.strerror}") from error
        return self._addresses[key]

    def close(self, key: _Key, /) -> None:
        """Accept no more connections for a key."""
        address, server = self._addresses.pop(key, None), self._servers.pop(key, None)
        if server is not None:
            server.close()
        if address is not None:
            with suppress(FileNotFoundError):
                Path(_path_of(address)).unlink()

    async def stop(self) -> None:
        """End every connection."""
        for key in tuple(self._addresses):
            self.close(key)
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, key: _Key, connection: Connected) -> None:
        if _is_own(connection[1]):
            await self._serve(key, connection)


async def connected(
    address: str, *, ssl: ssl.SSLContext | None = None, server_hostname: str | None = None
) -> Connected:
    """Connect to an address of this machine."""
    return await asyncio.open_unix_connection(
        _path_of(address), limit=PIPE_PIECE_BYTES, ssl=ssl, server_hostname=server_hostname
    )


def _path_of(address: str) -> str:
    return address.removeprefix(_SCHEME)


def _is_own(writer: asyncio.StreamWriter) -> bool:
    """Whether the other end of a connection belongs to this process."""
    credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[0] == os.getpid())
