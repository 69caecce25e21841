"""The second port of a module: streams of raw bytes for large files, which a control stream offers (MESSIAHS 5.3.3).

The answer on a `Put` or `Read` stream offers a port and a token. The peer dials the port with the key with which it
opened the control stream, and sends the token, which works once. Both ends compare the other's key with that of the
control stream, so that the rules for certificates are those of that stream.
"""

import asyncio
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from weakref import WeakKeyDictionary

from messiahs.channel.byte_streams.bulk_streams import BulkStream
from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.channel.certificates.fingerprints import key_fingerprint
from messiahs.channel.certificates.in_force import TlsInForce, in_force
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import own_key
from messiahs.channel.contract import ChannelSettings, NeighborAddress, Peer
from messiahs.channel.http_proxies import connect, way_to
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError
from messiahs.wire.codec import BulkOffer

STREAM_LIMIT: Final = 64
PEER_STREAM_LIMIT: Final = 16
HANDSHAKE_LIMIT: Final = 32
_HANDSHAKE_SECONDS: Final = 10.0
_DIAL_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 1.0
TOKEN_BYTES: Final = 16
_READY: Final = b"\x01"
_UNDIALABLE_SECONDS: Final = 300.0
_UNDIALABLE_LIMIT: Final = 1_024


class Offered:
    """A stream that a peer may open until `close`, which also closes the open stream (mutable).

    With `is_dialed`, the peer has offered it, and this side has opened it.
    """

    def __init__(self, offer: BulkOffer, peer: Peer, on_closed: Callable[[], None], *, is_dialed: bool = False) -> None:
        self.offer, self.peer, self.is_dialed = offer, peer, is_dialed
        self.stream: asyncio.Future[BulkStream] = asyncio.get_running_loop().create_future()
        self._on_closed: Callable[[], None] | None = on_closed

    def close(self) -> None:
        """End the offer; repeated calls are allowed."""
        if self._on_closed is None:
            return
        self._on_closed()
        self._on_closed = None
        if self.stream.done() and not self.stream.cancelled():
            self.stream.result().close()
        self.stream.cancel()

    def opened(self) -> BulkStream:
        """Return the stream that the peer says it has opened; a `ChannelError` if it has not."""
        if not self.stream.done() or self.stream.cancelled():
            raise ChannelError("the peer did not open the stream that it was offered")
        return self.stream.result()

    def open(self, stream: BulkStream) -> None:
        """Pass on the stream that the peer has opened."""
        if self.stream.done():
            stream.close()
        else:
            self.stream.set_result(stream)


class BulkPort:
    """Listens for streams that were offered to peers, and dials those that peers offer (mutable).

    At most `STREAM_LIMIT` streams are offered or open at once, of them `PEER_STREAM_LIMIT` for one peer, and at most
    `HANDSHAKE_LIMIT` connections are in their handshake; more are closed.
    """

    def __init__(
        self, settings: ChannelSettings, tls: TlsMaterial | TlsInForce, on_refused: Callable[[str, str], None]
    ) -> None:
        self._settings, self._tls, self._on_refused = settings, in_force(tls), on_refused
        self._tls.on_changed(self._renew_context)
        self._listener: socket.socket | None = None
        self._context: ssl.SSLContext | None = None
        self._offered: dict[bytes, Offered] = {}
        self._of_peers: Counter[SystemId] = Counter()
        self._handshakes: set[ssl.SSLSocket] = set()
        self._undialable: dict[tuple[SystemId, str], float] = {}
        self._dialed: WeakKeyDictionary[BulkStream, SystemId] = WeakKeyDictionary()
        self._addresses: dict[SystemId, str | None] = {each.system: each.address for each in settings.neighbors}

    def start(self) -> None:
        """Listen, unless nobody can dial this module; a `ChannelError` if that fails."""
        if not self._settings.listen:
            return
        host = self._settings.listen.rpartition(":")[0].strip("[]")
        port = self._settings.bulk_port
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, port), family=family, backlog=HANDSHAKE_LIMIT)
            self._renew_context()
        except ssl.SSLError as error:
            text = f"the key and the certificate of this module cannot be used ({error.reason or error})"
            advice = "`messiahs certificate show` says why; if they were just being replaced, start it again"
            assert self._listener is not None, "the context is made for a listener"
            self._listener.close()
            self._listener = None
            raise ChannelError(f"{text}: {advice}") from error
        except OSError as error:
            raise ChannelError(f"cannot listen on {host}:{port} for large files: {error.strerror or error}") from error
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _renew_context(self) -> None:
        if self._listener is not None:
            tls = self._tls.now
            self._context = tls.context(ssl.PROTOCOL_TLS_SERVER, roots=tls.all_roots)
            # No peer opens a second stream without a new offer.
            self._context.num_tickets = 0

    def stop(self) -> None:
        """Stop listening, and end all streams and handshakes."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in tuple(self._handshakes):
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for offered in tuple(self._offered.values()):
            offered.close()

    @property
    def handshakes(self) -> int:
        """The number of connections that have not shown a token yet."""
        return len(self._handshakes)

    @property
    def streams(self) -> Mapping[SystemId, int]:
        """The numbers of streams that are offered or open for each peer, with those that peers offer."""
        return self._of_peers

    def offer(self, peer: Peer) -> Offered | None:
        """Offer a stream to a peer; None if too many are offered or open."""
        if self._listener is None or not self._has_room_for(peer):
            return None
        token = secrets.token_bytes(TOKEN_BYTES)
        port = self._listener.getsockname()[1]

        def forget() -> None:
            self._offered.pop(token, None)
            self._count_less(peer)

        self._of_peers[peer.system] += 1
        offer = BulkOffer(port=port, token=token, key=own_key(self._tls.now))
        offered = self._offered[token] = Offered(offer, peer, forget)
        return offered

    async def answer(self, peer: Peer, offer: BulkOffer | None) -> Offered | None:
        """Return a stream for contents that a peer asks about: the one that it offers, or one that is offered to it.

        None if this module dials the peer and cannot open the stream, or if too many are offered or open.
        """
        address = self._addresses.get(peer.system)
        if offer is None or address is None or offer.key != peer.key:
            return self.offer(peer)
        if not self._has_room_for(peer):
            return None
        self._of_peers[peer.system] += 1
        try:
            stream = await self.dial(peer.system, address, offer)
        except BaseException:
            self._count_less(peer)
            raise
        if stream is None:
            self._count_less(peer)
            return None
        dialed = Offered(offer, peer, lambda: self._count_less(peer), is_dialed=True)
        dialed.open(stream)
        return dialed

    def is_worth(self, size_bytes: int) -> bool:
        """Whether so many bytes should have a stream of their own."""
        return size_bytes >= self._settings.bulk_least_bytes

    def is_dialable(self, peer: SystemId, address: str) -> bool:
        """Whether the port of a peer can be reached, as far as is known."""
        return self._undialable.get((peer, address), 0.0) <= time.monotonic()

    async def dial(self, peer: SystemId, address: str, offer: BulkOffer, /) -> BulkStream | None:
        """Open a stream that a peer offers.

        None if the port cannot be reached, which is reported and remembered for 5 minutes.
        """
        if not self.is_dialable(peer, address):
            return None
        opening = _Opening()
        try:
            stream = await in_own_thread(lambda: self._open(opening, peer, address, offer=offer), stop=opening.close)
        except (OSError, ValueError, ChannelError) as error:
            self._undialable.pop((peer, address), None)
            if len(self._undialable) >= _UNDIALABLE_LIMIT:
                del self._undialable[next(iter(self._undialable))]
            self._undialable[peer, address] = time.monotonic() + _UNDIALABLE_SECONDS
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self._on_refused(
                peer,
                f"the port for large files (`bulk_port`), {offer.port}, cannot be dialed: {why}. "
                "Large files go through the first port, more slowly",
            )
            return None
        self._dialed[stream] = peer
        return stream

    def link(self, neighbor: NeighborAddress) -> None:
        """Learn of a new neighbor, or of another address."""
        self._addresses[neighbor.system] = neighbor.address

    def unlink(self, system: SystemId) -> None:
        """Forget a neighbor."""
        self._addresses.pop(system, None)

    def cut(self, peer: SystemId) -> None:
        """End the streams that this side has opened to a peer; those of the peer end with their control streams."""
        for stream in [stream for stream, system in self._dialed.items() if system == peer]:
            stream.close()

    def _has_room_for(self, peer: Peer) -> bool:
        return self._of_peers.total() < STREAM_LIMIT and self._of_peers[peer.system] < PEER_STREAM_LIMIT

    def _count_less(self, peer: Peer) -> None:
        self._of_peers[peer.system] -= 1
        if not self._of_peers[peer.system]:
            del self._of_peers[peer.system]

    def _open(self, opening: "_Opening", peer: SystemId, address: str, *, offer: BulkOffer) -> BulkStream:
        tls = self._tls.now
        context = tls.context(ssl.PROTOCOL_TLS_CLIENT, roots=tls.roots_for(peer))
        proxy, first = way_to(peer, address, self._settings.http_proxy, self._addresses)
        connection = connect(proxy, f"{first.rpartition(':')[0]}:{offer.port}", timeout_seconds=_DIAL_SECONDS)
        keep_alive(connection, self._settings.silence_seconds)
        secured = context.wrap_socket(connection, server_hostname=str(peer), do_handshake_on_connect=False)
        try:
            opening.use(secured)
            is_open = _open_with(secured, offer)
        except BaseException:
            secured.close()
            raise
        if not is_open:
            secured.close()
            raise OSError("the module at the port for large files does not know its offer")
        return BulkStream(secured)

    def _accept(self) -> None:
        assert self._listener is not None, "the listener is removed from the loop before it is closed"
        assert self._context is not None, "it is made before"
        loop = asyncio.get_running_loop()
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            # Out of file descriptors, for example: the connection waits, and would be reported again at once.
            loop.remove_reader(self._listener)
            loop.call_later(_PAUSE_SECONDS, self._listen_again)
            return
        if len(self._handshakes) >= HANDSHAKE_LIMIT:
            connection.close()
            return
        connection.settimeout(_HANDSHAKE_SECONDS)
        keep_alive(connection, self._settings.silence_seconds)
        try:
            # First, because a wrapped socket that is found to be reset stays open.
            connection.getpeername()
            secured = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        except OSError:
            # A stranger that reset the connection before it was accepted.
            connection.close()
            return
        self._handshakes.add(secured)
        threading.Thread(target=self._greet, args=(secured, loop), name="handshake", daemon=True).start()

    def _listen_again(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _greet(self, connection: ssl.SSLSocket, loop: asyncio.AbstractEventLoop) -> None:
        """Complete a handshake and read the token, in a thread."""
        token, key = b"", b""
        try:
            connection.do_handshake()
            token, key = connection.recv(TOKEN_BYTES), _key_of(connection)
        except (OSError, ValueError):
            # A stranger, or a peer that gave up.
            token = b""
        try:
            loop.call_soon_threadsafe(self._greeted, connection, token, key)
        except RuntimeError:
            # The loop has ended.
            connection.close()

    def _greeted(self, connection: ssl.SSLSocket, token: bytes, key: bytes) -> None:
        self._handshakes.discard(connection)
        offered = self._offered.get(token)
        if offered is None or offered.peer.key != key:
            connection.close()
            return
        del self._offered[token]
        try:
            connection.sendall(_READY)
        except OSError:
            connection.close()
            return
        offered.open(BulkStream(connection))


class _Opening:
    """The connection that a thread is opening (mutable)."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None
        self._is_closed = False

    def use(self, connection: socket.socket) -> None:
        """Note the connection."""
        self._connection = connection
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """End the connection, from another thread."""
        self._is_closed = True
        if self._connection is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


def keep_alive(connection: socket.socket, silence_seconds: float) -> None:
    """Let an unused connection carry something after two thirds of a time, as pings do on connections of gRPC."""
    third = max(1, int(silence_seconds / 3))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 2 * third), (socket.TCP_KEEPINTVL, third), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _open_with(connection: ssl.SSLSocket, offer: BulkOffer) -> bool:
    connection.do_handshake()
    if _key_of(connection) != offer.key:
        return False
    connection.sendall(offer.token)
    return connection.recv(len(_READY)) == _READY


def _key_of(connection: ssl.SSLSocket) -> bytes:
    certificate = connection.getpeercert(binary_form=True)
    assert certificate is not None, "both sides require a certificate"
    return key_fingerprint(certificate)
