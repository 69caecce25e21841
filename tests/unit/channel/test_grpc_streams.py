"""Which errors of gRPC are temporary, and which are permanent."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, cast

import grpc
import grpc.aio
import pytest

from messiahs.channel.grpc_streams import GrpcStream, TaskConnections, open_stream
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address
from messiahs.errors import ChannelError, ProtocolError


@dataclass(frozen=True, slots=True)
class _Broken:
    """An end of a stream that gRPC has ended with its own error."""

    details: str
    code: grpc.StatusCode = grpc.StatusCode.RESOURCE_EXHAUSTED

    async def read(self) -> object:
        """End."""
        raise self._error()

    async def write(self, message: bytes) -> None:
        """End."""
        del message
        raise self._error()

    def _error(self) -> grpc.aio.AioRpcError:
        nothing = grpc.aio.Metadata()
        return grpc.aio.AioRpcError(self.code, nothing, nothing, details=self.details, debug_error_string="")


@pytest.mark.parametrize(
    "details",
    [
        "CLIENT: Received message larger than max (17 vs. 16)",
        "SERVER: Sent message larger than max (17 vs. 16)",
        "Decompressed message larger than max",
    ],
)
def test_a_message_that_is_too_large_is_a_mistake_that_does_not_pass(details: str) -> None:
    with pytest.raises(ProtocolError):
        asyncio.run(GrpcStream(_Broken(details)).read())


@pytest.mark.parametrize("details", ["Bandwidth exhausted or memory limit exceeded", "too_many_pings", ""])
def test_other_resources_that_are_exhausted_come_back(details: str) -> None:
    with pytest.raises(ChannelError) as caught:
        asyncio.run(GrpcStream(_Broken(details)).read())
    assert not isinstance(caught.value, ProtocolError)


@pytest.mark.parametrize(
    ("code", "details", "text"),
    [
        (grpc.StatusCode.INTERNAL, "Internal error from Core", "the connection was lost"),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", "the connection was lost"),
        (
            grpc.StatusCode.UNAVAILABLE,
            "recvmsg:Connection reset by peer",
            "the connection was lost",
        ),
        (grpc.StatusCode.UNAVAILABLE, "ping timeout", "it did not answer for too long"),
        (grpc.StatusCode.UNAVAILABLE, "no room for 5 bytes", "unavailable: no room for 5 bytes"),
    ],
)
def test_the_words_of_grpc_become_a_plain_sentence_and_those_of_a_peer_stay(
    code: grpc.StatusCode, details: str, text: str
) -> None:
    with pytest.raises(ChannelError) as caught:
        asyncio.run(GrpcStream(_Broken(details, code)).read())
    assert str(caught.value) == text
    # Words of gRPC that are not known may contain an address.
    assert caught.value.public == (text if details not in text else "the stream ended (unavailable)")


def test_a_port_where_nobody_listens_is_reported_in_plain_words() -> None:
    async def scene() -> str:
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(ChannelError) as caught:
                await GrpcStream(open_stream(channel, "/none/None")).read()
        return str(caught.value)

    assert asyncio.run(scene()) == "it cannot be connected to: Connection refused"


def test_a_stream_on_a_connection_that_was_closed_meanwhile_is_an_error_of_channels() -> None:
    class Closed:
        """Dials connections that are closed at once."""

        async def open(self, peer: SystemId, address: Address) -> grpc.aio.Channel:
            del peer
            channel = grpc.aio.insecure_channel(str(address))
            await channel.close(None)
            return channel

    async def use() -> None:
        connections = TaskConnections(cast("Any", None), cast("Any", Closed()), cast("Any", None))
        await connections.open_pipe(SystemId("right"), "127.0.0.1:1").write(b"")

    with pytest.raises(ChannelError):
        asyncio.run(use())
