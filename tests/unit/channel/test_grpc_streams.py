"""Which errors of gRPC are temporary, and which are permanent."""

import asyncio
from dataclasses import dataclass

import grpc
import grpc.aio
import pytest

from messiahs.channel.grpc_streams import GrpcStream
from messiahs.errors import ChannelError, ProtocolError


@dataclass(frozen=True, slots=True)
class _Broken:
    """An end of a stream that gRPC has ended with its own error."""

    details: str

    async def read(self) -> object:
        """End."""
        raise self._error()

    async def write(self, message: bytes) -> None:
        """End."""
        del message
        raise self._error()

    def _error(self) -> grpc.aio.AioRpcError:
        nothing = grpc.aio.Metadata()
        return grpc.aio.AioRpcError(
            grpc.StatusCode.RESOURCE_EXHAUSTED, nothing, nothing, details=self.details, debug_error_string=""
        )


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
