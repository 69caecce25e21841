"""Calls of methods of gRPC without the product's client, for callers that are to be refused."""

import asyncio
from typing import Final

import grpc
import grpc.aio

from tests.waiting import PATIENCE_SECONDS

_ONE_REQUEST: Final = ("Membership/Join", "Task/Read")


async def status_of(channel: grpc.aio.Channel, method: str, *, content: bytes = b"") -> tuple[object, str]:
    """Call a method, and return the status code and the text with which it ends.

    Nothing is written on a stream: gRPC calls a write that the peer's refusal overtakes an internal error of its own.
    """
    path = f"/messiahs.wire.v1.{method}"
    call: grpc.aio.UnaryStreamCall[bytes, bytes] | grpc.aio.StreamStreamCall[bytes, bytes]
    if method in _ONE_REQUEST:
        call = channel.unary_stream(path, None, None)(content)
    else:
        call = channel.stream_stream(path, None, None)(None)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while isinstance(await call.read(), bytes):
                pass
    except grpc.aio.AioRpcError as error:
        return error.code(), str(error.details())
    return await call.code(), str(await call.details())
