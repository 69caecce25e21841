"""Pieces above the limit of a message: they are refused, and the receiver learns at once why."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates.tls import load, make_root
from messiahs.channel.contract import Channels
from messiahs.channel.grpc_streams import open_stream
from messiahs.errors import ProtocolError
from messiahs.wire.codec import ReadRequest, put_answer_from_bytes, put_request_to_bytes
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES
from messiahs.wire.v1 import task_pb2
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, NYNEVE, TICKET, World, attempt, make_grpc, tls_files
from tests.contract.test_channels_files import hash_of, put_of, reader
from tests.waiting import until

GRPC_LIMIT_BYTES = 4 * MESSAGE_LIMIT_BYTES
OVERSIZE = (MESSAGE_LIMIT_BYTES + 1, 2 * MESSAGE_LIMIT_BYTES, 5 * MESSAGE_LIMIT_BYTES)
"""Above the limit of the codec, and above that of gRPC."""
READ = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")

Context = grpc.aio.ServicerContext[bytes, bytes]


@asynccontextmanager
async def odd_executor(folder: Path, size: int) -> AsyncIterator[tuple[Channels, str]]:
    """Serve pieces of a size that no release sends; return an origin's channels and the executor's address."""
    root = make_root(FEDERATION)

    async def read(_request: bytes, context: Context) -> None:
        await context.write(task_pb2.ReadChunk(content=bytes(size)).SerializeToString())

    async def put(_: object, context: Context) -> None:
        await context.read()
        await context.write(task_pb2.PutAnswer(problem="x" * size).SerializeToString())

    material = load(tls_files(folder, root, name="cs"))
    server = grpc.aio.server(options=(("grpc.max_send_message_length", -1),))
    handlers = {
        "Read": grpc.unary_stream_rpc_method_handler(read),
        "Put": grpc.stream_stream_rpc_method_handler(put),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("messiahs.wire.v1.Task", handlers),))
    credentials = grpc.ssl_server_credentials([(material.key, material.certificate)])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    world = World(make_grpc(folder, root))
    nyneve = await world.start(NYNEVE)
    try:
        yield nyneve.channels, f"127.0.0.1:{port}"
    finally:
        await world.stop_all()
        await server.stop(None)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await scene()

    asyncio.run(run())


@pytest.mark.parametrize("size", OVERSIZE)
def test_an_output_in_oversize_pieces_is_abandoned_at_once(tmp_path: Path, size: int) -> None:
    async def scene() -> None:
        async with odd_executor(tmp_path, size) as (channels, address):
            with pytest.raises(ProtocolError):
                _ = [piece async for piece in channels.fetch(CS, address, READ)]

    play(scene)


@pytest.mark.parametrize("size", OVERSIZE)
def test_an_oversize_answer_to_a_sender_of_files_ends_the_transfer(tmp_path: Path, size: int) -> None:
    async def scene() -> None:
        async with odd_executor(tmp_path, size) as (channels, address):
            with pytest.raises(ProtocolError):
                await channels.put(CS, address, put_of(b"content"), reader(b"content"))

    play(scene)


@pytest.mark.parametrize("size", OVERSIZE)
def test_a_sender_of_oversize_pieces_is_told_so_at_once(tmp_path: Path, size: int) -> None:
    async def scene() -> None:
        root = make_root(FEDERATION)
        world = World(make_grpc(tmp_path, root))
        cs = await world.start(CS)
        material = load(tls_files(tmp_path, root, name="nyneve"))
        credentials = grpc.ssl_channel_credentials(material.trust, material.key, material.certificate)
        options = (("grpc.ssl_target_name_override", "cs"), ("grpc.max_send_message_length", -1))
        content = bytes(size)
        async with grpc.aio.secure_channel(cs.channels.address, credentials, options=options) as channel:
            stream = open_stream(channel, "/messiahs.wire.v1.Task/Put")
            await stream.write(put_request_to_bytes(put_of(content)))
            first = await stream.read()
            assert isinstance(first, bytes)
            assert put_answer_from_bytes(first).offsets_bytes == (0,)
            await stream.write(task_pb2.PutMessage(content=content).SerializeToString())
            if size > GRPC_LIMIT_BYTES:
                with pytest.raises(grpc.aio.AioRpcError, match="RESOURCE_EXHAUSTED"):
                    await stream.read()
            else:
                answer = await stream.read()
                assert isinstance(answer, bytes)
                assert "bytes of message" in put_answer_from_bytes(answer).problem
            await until(lambda: not cs.arrivals.arriving, "that the executor has let go of the file")
        assert cs.files.missing([hash_of(content)])
        await world.stop_all()

    play(scene)
