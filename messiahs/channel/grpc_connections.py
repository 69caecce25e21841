"""The connections of links over gRPC (MESSIAHS 5.3)."""

import asyncio

import grpc.aio

from messiahs.channel.grpc_streams import CONTROL, LINK_KEY, GrpcStream, open_stream


class DialedConnection:
    """A connection that this side opened."""

    def __init__(self, channel: grpc.aio.Channel, control: GrpcStream, updates: GrpcStream, name: str) -> None:
        self._channel, self.control, self._updates, self._name = channel, control, updates, name

    def requests(self) -> GrpcStream:
        """Open the stream of requests for pipes, which ends with the connection."""
        return GrpcStream(open_stream(self._channel, f"/{CONTROL}/Wanted", metadata=((LINK_KEY, self._name),)))

    async def updates(self) -> GrpcStream:
        """Return the update channel."""
        return self._updates

    async def close(self) -> None:
        """Close the connection and every stream on it."""
        await self._channel.close(None)


class AcceptedConnection:
    """A connection that a neighbor opened. Its update channel may arrive later than its control channel."""

    def __init__(self, control: GrpcStream) -> None:
        self.control = control
        self._updates: asyncio.Future[GrpcStream] = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()

    async def updates(self) -> GrpcStream:
        """Wait for the update channel."""
        return await asyncio.shield(self._updates)

    async def close(self) -> None:
        """End the update channel; gRPC ends both streams when their handlers return."""
        self._closed.set()

    async def has_closed(self) -> None:
        """Wait until the connection is closed."""
        await self._closed.wait()

    async def serve_updates(self, updates: GrpcStream) -> bool:
        """Use an update channel until the connection ends; False if the connection has one already."""
        if self._updates.done():
            return False
        self._updates.set_result(updates)
        await self._closed.wait()
        return True
