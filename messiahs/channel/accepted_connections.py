"""Connections that others have opened: no system and no address uses up those that all share (MESSIAHS 5.3).

gRPC bounds their total. It shows a connection only while it carries a stream, so those of a system are counted then. A
connection without a stream may be of anybody, so those of one address are counted; behind one address may be many
modules, but hardly one of them has a connection without a stream for long.
"""

import asyncio
import os
import resource
import socket
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import unquote

import psutil

from messiahs.channel.periodic_jobs import repeat
from messiahs.core.model.ids import SystemId

CONNECTION_LIMIT: Final = 16
"""Connections of one system that carry streams; an honest one has two, or seven with many streams, more after a cut."""
_SHARES: Final = 4
"""One address may have so large a share of all connections without a stream."""
_CHECK_SECONDS: Final = 1.0
_CUT_SECONDS: Final = 1.0
"""Time for streams to end with their reasons."""
_HOST_BITS: Final = 64
"""One host commonly has all addresses of a network of IPv6 with so many bits."""
_DESCRIPTORS: Final = "/proc/self/fd"


class RemoteEnd(NamedTuple):
    """The remote end of a connection."""

    host: str
    port: int


def allowed_connections() -> int:
    """Return how many connections others may open: the rest of the daemon needs file descriptors, too."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return files // 2


class AcceptedConnections:
    """Connections that carry streams, by their systems (mutable). Belongs to the event loop."""

    def __init__(self, allowed: int) -> None:
        self._share = allowed // _SHARES
        self._streams: dict[SystemId, Counter[str]] = {}
        self._port: int | None = None

    def may_carry(self, system: SystemId, peer: str) -> bool:
        """Whether a system may open a stream on a connection, which gRPC names by its remote end."""
        used = self._streams.get(system, Counter())
        return peer in used or len(used) < CONNECTION_LIMIT

    def begin(self, system: SystemId, peer: str) -> None:
        """Count a stream on a connection of a system."""
        self._streams.setdefault(system, Counter())[peer] += 1

    def end(self, system: SystemId, peer: str) -> None:
        """Count a stream no more."""
        used = self._streams[system]
        used[peer] -= 1
        if not used[peer]:
            del used[peer]
        if not used:
            del self._streams[system]

    def cut(self, system: SystemId) -> None:
        """Hang up on the connections that carry streams of a system now, after a while in which these may end.

        A stream that is ended while the peer does not read stays open otherwise.
        """
        ends = {end_of(peer) for peer in self._streams.get(system, ())} - {None}
        if ends and self._port is not None:
            asyncio.get_running_loop().call_later(_CUT_SECONDS, _begin_to_hang_up, self._port, ends)

    async def watch(self, port: int) -> None:
        """Hang up on connections to a port of which an address has too many without a stream, until it is cancelled."""
        self._port = port
        failure = "connections without a stream could not be counted"
        await repeat(partial(self._check, port), period_seconds=_CHECK_SECONDS, failure=failure)

    async def _check(self, port: int) -> None:
        if len(os.listdir(_DESCRIPTORS)) > self._share:  # noqa: PTH208 - names are counted, paths are not needed
            carrying = {end_of(peer) for used in self._streams.values() for peer in used}
            await asyncio.to_thread(_hang_up, port, self._share, carrying)


def _hang_up(port: int, share: int, carrying: Collection[RemoteEnd | None]) -> None:
    found: dict[object, list[tuple[int, RemoteEnd]]] = {}
    for descriptor, end in _ends_at(port):
        if end not in carrying:
            found.setdefault(_owner_of(end.host), []).append((descriptor, end))
    for ends in found.values():
        for descriptor, end in ends[share:]:
            _shut(descriptor, end)


def _begin_to_hang_up(port: int, ends: Collection[RemoteEnd | None]) -> None:
    asyncio.get_running_loop().run_in_executor(None, _hang_up_on, port, ends)


def _hang_up_on(port: int, ends: Collection[RemoteEnd | None]) -> None:
    for descriptor, end in _ends_at(port):
        if end in ends:
            _shut(descriptor, end)


def _ends_at(port: int) -> Iterable[tuple[int, RemoteEnd]]:
    with suppress(psutil.Error, OSError):
        for one in psutil.Process().net_connections(kind="tcp"):
            if one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port:
                yield one.fd, RemoteEnd(_plain(one.raddr.ip), one.raddr.port)


def _shut(descriptor: int, end: RemoteEnd) -> None:
    """End a connection, unless its descriptor has become that of another one; gRPC then closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        host, port, *_ = connection.getpeername()
        if RemoteEnd(_plain(host), port) == end:
            connection.shutdown(socket.SHUT_RDWR)


def end_of(peer: str) -> RemoteEnd | None:
    """Return the end that gRPC writes as ipv4:HOST:PORT or ipv6:[HOST]:PORT, encoded as in URLs; None for a pipe."""
    scheme, _, rest = unquote(peer).partition(":")
    if not scheme.startswith("ipv"):
        return None
    host, _, port = rest.rpartition(":")
    return RemoteEnd(_plain(host.strip("[]")), int(port))


def _plain(host: str) -> str:
    return str(_address(host))


def _address(host: str) -> IPv4Address | IPv6Address:
    # Without the interface of a link-local address, which not all of the sources of addresses have.
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _owner_of(host: str) -> object:
    address = _address(host)
    return address if isinstance(address, IPv4Address) else ip_network((address, _HOST_BITS), strict=False)
