"""The connections of links over gRPC (MESSIAHS 5.3)."""

import asyncio
import secrets
from typing import Final

import grpc
import grpc.aio

from messiahs.channel.admission import SHUT_OFF, WHY_SHUT_OFF
from messiahs.channel.grpc_errors import text_of
from messiahs.channel.grpc_streams import CONTROL, LINK_KEY, REFUSAL_KEY, UPDATE, GrpcStream, open_stream
from messiahs.core.model.texts import printable
from messiahs.errors import ChannelError

_ANSWER_SECONDS: Final = 10.0
_LINK_NAME_BYTES: Final = 16
Context = grpc.aio.ServicerContext[bytes, bytes]


class DialedConnection:
    """A connection that this side opened."""

    def __init__(self, channel: grpc.aio.Channel, control: GrpcStream, updates: GrpcStream, name: str) -> None:
        self._channel, self.control, self._updates, self._name = channel, control, updates, name

    def requests(self) -> GrpcStream:
        """Open the stream of requests for pipes, which ends with the connection."""
        return self.beside(f"{CONTROL}/Wanted")

    def beside(self, method: str) -> GrpcStream:
        """Open another stream of the link, which ends with the connection."""
        return GrpcStream(open_stream(self._channel, f"/{method}", metadata=((LINK_KEY, self._name),)))

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


def link_name(context: Context) -> str:
    """Return the name that a caller gives to its link; empty if it is too long."""
    name = told(context, LINK_KEY)
    return name if len(name) <= 2 * _LINK_NAME_BYTES else ""


def told(context: Context, wanted: str) -> str:
    """Return a text of the metadata; empty without it."""
    texts = (value for key, value in context.invocation_metadata() or () if key == wanted and isinstance(value, str))
    return next(texts, "")


async def opened(channel: grpc.aio.Channel, address: str, *, is_shut_off: bool) -> DialedConnection:
    """Open a link on a channel, or only tell the neighbor that it is shut off; raises `ChannelError`."""
    name = secrets.token_hex(_LINK_NAME_BYTES)
    metadata = ((LINK_KEY, name), *(((REFUSAL_KEY, SHUT_OFF),) if is_shut_off else ()))
    control = open_stream(channel, f"/{CONTROL}/Exchange", metadata=metadata)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            accepted = await control.initial_metadata()
            if (LINK_KEY, name) not in tuple(accepted):
                code, details = await control.code(), await control.details()
                if details == SHUT_OFF:
                    raise ChannelError(WHY_SHUT_OFF)
                raise ChannelError(f"{address}: {code.name.lower()}: {printable(str(details))}")
    except TimeoutError as error:
        raise ChannelError(f"{address}: no answer within {_ANSWER_SECONDS:.0f} s") from error
    except grpc.RpcError as error:
        raise ChannelError(f"{address}: {text_of(error)}") from error
    updates = open_stream(channel, f"/{UPDATE}/Exchange", metadata=metadata)
    return DialedConnection(channel, GrpcStream(control), GrpcStream(updates), name)
