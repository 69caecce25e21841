"""Guarantees of the streams of raw bytes about strangers, limits, and ports that cannot be dialed (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from messiahs.channel.byte_streams.bulk_port import HANDSHAKE_LIMIT, PEER_STREAM_LIMIT, STREAM_LIMIT, BulkPort
from messiahs.channel.byte_streams.bulk_streams import BulkStream
from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.channel.byte_streams.output_streams import OutputStreams
from messiahs.channel.certificates import tls
from messiahs.channel.certificates.trusted_roots import own_key
from messiahs.channel.contract import ChannelSettings, NeighborAddress, Peer
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.core.model.ids import SystemId, Ticket
from messiahs.errors import ChannelError
from messiahs.wire.codec import BulkOffer, ReadRequest, read_request_to_bytes
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, NYNEVE, XINU, Recorded, attempt, tls_files
from tests.waiting import until

HOST = "127.0.0.1:1"


class Ports:
    """Ports of modules of one federation, and what clients of them need."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._root = folder, tls.make_root(FEDERATION)
        self._open: list[BulkPort] = []
        self.refused: list[tuple[str, str]] = []

    def material(self, name: SystemId) -> tls.TlsMaterial:
        """Return a certificate for a module; each call makes another key."""
        return tls.load(tls_files(self._folder, self._root, name=name))

    def start(self, name: SystemId, *, neighbors: tuple[SystemId, ...] = ()) -> tuple[BulkPort, Peer]:
        """Listen as a module that dials some neighbors; the second value is how others know it."""
        material = self.material(name)
        dialed = tuple(NeighborAddress(system=each, address=HOST) for each in neighbors)
        settings = ChannelSettings(federation=FEDERATION, name=name, listen="127.0.0.1:0", neighbors=dialed)
        port = BulkPort(settings, material, lambda peer, text: self.refused.append((peer, text)))
        port.start()
        self._open.append(port)
        return port, Peer(system=name, key=own_key(material))

    def stop(self) -> None:
        """Stop all of them."""
        for port in self._open:
            port.stop()


def play(folder: Path, scene: Callable[[Ports], Awaitable[None]]) -> None:
    async def run() -> None:
        ports = Ports(folder)
        try:
            async with asyncio.timeout(60):
                await scene(ports)
        finally:
            ports.stop()

    asyncio.run(run())


async def read_all(stream: BulkStream) -> bytes:
    def read() -> bytes:
        buffer, content = memoryview(bytearray(100_000)), bytearray()
        while size := stream.read_into(buffer):
            content += buffer[:size]
        return bytes(content)

    return await in_own_thread(read, stop=stream.close)


def test_bytes_arrive_until_the_stream_ends(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000

    async def scene(ports: Ports) -> None:
        cs, nyneve = ports.start(CS), ports.start(NYNEVE)
        offered = cs[0].offer(nyneve[1])
        assert offered is not None
        stream = await nyneve[0].dial(CS, HOST, offered.offer)
        assert stream is not None
        reading = asyncio.create_task(read_all(await offered.stream))
        await in_own_thread(lambda: stream.write(memoryview(content)), stop=stream.close)
        stream.close()
        assert hashlib.sha256(await reading).digest() == hashlib.sha256(content).digest()
        offered.close()

    play(tmp_path, scene)


def test_a_token_opens_one_stream_for_its_peer_only(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        cs, nyneve, xinu = ports.start(CS), ports.start(NYNEVE), ports.start(XINU)
        offered = cs[0].offer(nyneve[1])
        assert offered is not None
        assert await xinu[0].dial(CS, HOST, offered.offer) is None
        assert not offered.stream.done()
        first = await nyneve[0].dial(CS, HOST, offered.offer)
        assert first is not None
        assert await nyneve[0].dial(CS, HOST, offered.offer) is None
        first.close()
        offered.close()

    play(tmp_path, scene)


def test_a_stream_is_not_opened_after_its_offer_has_ended(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        cs, nyneve = ports.start(CS), ports.start(NYNEVE)
        offered = cs[0].offer(nyneve[1])
        assert offered is not None
        offered.close()
        assert await nyneve[0].dial(CS, HOST, offered.offer) is None

    play(tmp_path, scene)


def test_a_module_with_another_key_at_the_port_gets_no_token(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (_, first), (impostor, _), (nyneve, known) = ports.start(CS), ports.start(CS), ports.start(NYNEVE)
        offered = impostor.offer(known)
        assert offered is not None
        assert (
            await nyneve.dial(CS, HOST, BulkOffer(port=offered.offer.port, token=offered.offer.token, key=first.key))
            is None
        )
        assert not offered.stream.done()
        offered.close()

    play(tmp_path, scene)


def test_a_port_that_cannot_be_dialed_is_reported_and_remembered_for_its_address(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        nyneve, _ = ports.start(NYNEVE)
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            gone = nobody.getsockname()[1]
        offer = BulkOffer(port=gone, token=bytes(16), key=bytes(16))
        assert nyneve.is_dialable(CS, HOST)
        assert await nyneve.dial(CS, HOST, offer) is None
        assert not nyneve.is_dialable(CS, HOST)
        assert nyneve.is_dialable(CS, "127.0.0.1:2")
        assert nyneve.is_dialable(XINU, HOST)
        assert await nyneve.dial(CS, HOST, offer) is None
        text = (
            f"the port for large files (`bulk_port`), {gone}, cannot be dialed: Connection refused. "
            "Large files go through the first port, more slowly"
        )
        assert ports.refused == [(CS, text)]

    play(tmp_path, scene)


def test_offers_are_bounded_for_each_peer_and_for_all(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        cs, _ = ports.start(CS)
        peers = [Peer(system=SystemId(f"peer{number}"), key=bytes(16)) for number in range(5)]
        offered = [cs.offer(peers[0]) for _ in range(PEER_STREAM_LIMIT)]
        assert cs.offer(peers[0]) is None
        offered += [cs.offer(peer) for peer in peers[1:4] for _ in range(PEER_STREAM_LIMIT)]
        assert len(offered) == STREAM_LIMIT
        assert None not in offered
        assert cs.offer(peers[4]) is None
        assert offered[0] is not None
        offered[0].close()
        assert cs.offer(peers[4]) is not None

    play(tmp_path, scene)


def test_streams_that_peers_offer_count_like_those_that_they_are_offered(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (cs, known), (nyneve, peer) = ports.start(CS), ports.start(NYNEVE, neighbors=(CS,))
        own = [nyneve.offer(known) for _ in range(PEER_STREAM_LIMIT - 1)]
        first, second = cs.offer(peer), cs.offer(peer)
        assert first is not None
        assert second is not None
        dialed = await nyneve.answer(known, first.offer)
        assert dialed is not None
        assert dialed.is_dialed
        assert await nyneve.answer(known, second.offer) is None
        assert not second.stream.done()
        for each in (*own, dialed):
            assert each is not None
            each.close()
        # Nothing is left of a peer without streams.
        assert nyneve.streams == {}
        again = await nyneve.answer(known, second.offer)
        assert again is not None
        for each in (again, first, second):
            each.close()

    play(tmp_path, scene)


def test_nothing_is_dialed_for_a_read_that_is_not_allowed(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (cs, known), (nyneve, peer) = ports.start(CS), ports.start(NYNEVE, neighbors=(CS,))
        offered = cs.offer(peer)
        assert offered is not None
        callbacks = Recorded(name=NYNEVE).callbacks()
        transport = GrpcTransport(
            ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0"), callbacks, ports.material(NYNEVE)
        )
        wrong = Ticket(bytes(16))
        request = ReadRequest(
            claim=CLAIM, ticket=wrong, attempt=attempt(1), name="stdout", bulk=True, offer=offered.offer
        )
        served = OutputStreams(transport, callbacks, nyneve).serve(known, read_request_to_bytes(request))
        with pytest.raises(PermissionError):
            await anext(served)
        assert not offered.stream.done()
        assert ports.refused == []

    play(tmp_path, scene)


def test_a_peer_whose_offer_cannot_be_dialed_keeps_its_share(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (_, known), (nyneve, _) = ports.start(CS), ports.start(NYNEVE, neighbors=(CS,))
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            gone = nobody.getsockname()[1]
        assert await nyneve.answer(known, BulkOffer(port=gone, token=bytes(16), key=known.key)) is None
        assert nyneve.streams == {}

    play(tmp_path, scene)


def test_connections_without_a_handshake_are_bounded_and_keep_nobody_out_for_long(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (cs, _), (nyneve, known) = ports.start(CS), ports.start(NYNEVE)
        offered = cs.offer(known)
        assert offered is not None
        address = ("127.0.0.1", offered.offer.port)
        strangers = [await asyncio.to_thread(socket.create_connection, address) for _ in range(HANDSHAKE_LIMIT + 5)]
        try:
            await until(lambda: sum(is_closed(each) for each in strangers) == 5, "the refused ones")
        finally:
            for each in strangers:
                each.close()
        await until(lambda: not cs.handshakes, "the end of the others")
        stream = await nyneve.dial(CS, HOST, offered.offer)
        assert stream is not None
        stream.close()
        offered.close()

    play(tmp_path, scene)


def test_a_connection_that_is_reset_before_it_is_accepted_is_no_error_of_the_module(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        (cs, _), (nyneve, known) = ports.start(CS), ports.start(NYNEVE)
        offered = cs.offer(known)
        assert offered is not None
        for content in (b"", b"x"):
            # The event loop accepts neither before both are reset.
            with socket.create_connection(("127.0.0.1", offered.offer.port)) as stranger:
                stranger.sendall(content)
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream = await nyneve.dial(CS, HOST, offered.offer)
        assert stream is not None
        assert not errors
        assert not cs.handshakes
        stream.close()
        offered.close()

    play(tmp_path, scene)


def test_a_key_that_does_not_fit_its_certificate_is_named_as_what_keeps_the_module_from_starting(
    tmp_path: Path,
) -> None:
    async def scene(ports: Ports) -> None:
        replaced = replace(ports.material(CS), key=ports.material(CS).key)
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0", neighbors=())
        text = "the key and the certificate of this module cannot be used .*: `messiahs certificate show` says why"
        with pytest.raises(ChannelError, match=text):
            BulkPort(settings, replaced, lambda *_: None).start()

    play(tmp_path, scene)


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_client_without_a_certificate_is_refused(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        (cs, _), (_, known) = ports.start(CS), ports.start(NYNEVE)
        offered = cs.offer(known)
        assert offered is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

        def try_it() -> bytes:
            with (
                socket.create_connection(("127.0.0.1", offered.offer.port)) as plain,
                context.wrap_socket(plain) as secured,
            ):
                secured.sendall(offered.offer.token)
                return secured.recv(1)

        # Depending on what arrives first: that a certificate is required, or the end of the connection.
        with pytest.raises(OSError, match=r"certificate required|EOF|reset"):
            await asyncio.to_thread(try_it)
        assert not offered.stream.done()
        offered.close()

    play(tmp_path, scene)


def test_closing_a_stream_ends_a_read_and_a_write_in_progress(tmp_path: Path) -> None:
    async def scene(ports: Ports) -> None:
        cs, nyneve = ports.start(CS), ports.start(NYNEVE)
        offered = cs[0].offer(nyneve[1])
        assert offered is not None
        stream = await nyneve[0].dial(CS, HOST, offered.offer)
        assert stream is not None
        reading = asyncio.create_task(read_all(await offered.stream))
        content = memoryview(bytes(64 << 20))
        (await offered.stream).close()
        with pytest.raises(ChannelError):
            await reading
        with pytest.raises(ChannelError):
            await in_own_thread(lambda: stream.write(content), stop=stream.close)
        stream.close()
        with pytest.raises(ChannelError, match="closed"):
            stream.write(content)

    play(tmp_path, scene)


def test_a_peer_that_sends_nothing_is_given_up(tmp_path: Path) -> None:
    ours, theirs = secured_pair(Ports(tmp_path))
    stream = BulkStream(ours, silence_seconds=0.05)
    with pytest.raises(ChannelError, match="sent nothing"):
        stream.read_into(memoryview(bytearray(10)))
    stream.close()
    theirs.close()


def test_a_peer_that_sends_less_than_a_kibibyte_a_second_is_given_up(tmp_path: Path) -> None:
    ours, theirs = secured_pair(Ports(tmp_path))
    stream = BulkStream(ours, silence_seconds=0.3)
    buffer = memoryview(bytearray(10))

    def read_for_ever() -> None:
        while True:
            theirs.sendall(b"x")
            assert stream.read_into(buffer) == 1

    with pytest.raises(ChannelError, match="1024 bytes a second"):
        read_for_ever()
    stream.close()
    theirs.close()


def secured_pair(ports: Ports) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    server, client = ports.material(CS), ports.material(NYNEVE)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dialed = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
    context = server.context(ssl.PROTOCOL_TLS_SERVER, roots=server.trust)
    context.num_tickets = 0
    ours = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
    theirs = client.context(ssl.PROTOCOL_TLS_CLIENT, roots=client.trust).wrap_socket(
        dialed, server_hostname=CS, do_handshake_on_connect=False
    )
    greeting = threading.Thread(target=ours.do_handshake)
    greeting.start()
    theirs.do_handshake()
    greeting.join()
    return ours, theirs
