"""Dialing through an HTTP proxy, which connects to the other module on request (RFC 9110, 9.3.6: CONNECT).

A module dials through the proxy of its settings, else through the one in its environment (`https_proxy`), unless
`no_proxy` of the environment names the host. Addresses of the own machine are never dialed through one.
"""

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from messiahs.channel.certificates.pinning import Connected
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import ChannelError

_HEAD_LIMIT_BYTES: Final = 16 << 10
_END_OF_HEAD: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: ([^\r\n]{0,100}))?")
_DEFAULT_PORT: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """A proxy; `url` has the user and the password, which no text shows."""

    url: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    def request(self, address: str) -> bytes:
        """Return the request for a connection to host:port."""
        lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}"]
        if self.user:
            secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {secret}")
        return "\r\n".join((*lines, "", "")).encode()

    def check(self, head: bytes) -> None:
        """Raise a `ChannelError` unless the head of the answer says that the connection exists."""
        status = _STATUS.match(head)
        if status is not None and status[1].startswith(b"2"):
            return
        said = b" ".join(each for each in status.groups() if each).decode(errors="replace") if status else "no HTTP"
        raise self.failed(f"does not connect to it: {printable(said)}")

    def failed(self, text: str) -> ChannelError:
        """Return the error of a connection that this proxy did not make."""
        return ChannelError(f"the HTTP proxy {self.host}:{self.port} {text}", public="its HTTP proxy does not connect")


def proxy_for(address: str, setting: str | None) -> HttpProxy | None:
    """Return the proxy through which host:port is dialed; None if it is dialed directly.

    `setting` is the proxy's URL in the topology. A `ChannelError` if the one in the environment is malformed.
    """
    host = address.rpartition(":")[0].strip("[]")
    named = getproxies_environment()
    url = setting or named.get("https") or named.get("all")
    if not url or _is_here(host) or proxy_bypass(host, named):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or _DEFAULT_PORT
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname:
        raise ChannelError("`https_proxy` of the environment is no HTTP proxy: it takes http://HOST:PORT")
    return HttpProxy(
        url=parts.geturl(),
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def way_to(
    peer: SystemId, address: str, setting: str | None, neighbors: Mapping[SystemId, str | None], /
) -> tuple[HttpProxy | None, str]:
    """Return the proxy through which a system is dialed, if any, and at which address.

    A proxy is asked for the addresses of `neighbors` alone: other ones come from other sites, which could find out what
    the proxy reaches. A `ChannelError` for a system without one. `setting` is as for `proxy_for`.
    """
    proxy = proxy_for(address, setting)
    if proxy is None:
        return None, address
    known = neighbors.get(peer)
    if not known:
        raise proxy.failed("is asked only for addresses of neighbors in the topology")
    return proxy_for(known, setting), known


async def connected_through(
    proxy: HttpProxy | None, address: str, *, ssl: ssl.SSLContext | None = None, server_hostname: str | None = None
) -> Connected:
    """Connect to host:port, with `ssl` over TLS, directly or through a proxy; raises `OSError` and `ChannelError`."""
    if proxy is None:
        host, _, port = address.rpartition(":")
        return await asyncio.open_connection(host.strip("[]"), int(port), ssl=ssl, server_hostname=server_hostname)
    reader, writer = await _opened(proxy)
    try:
        writer.write(proxy.request(address))
        head = await reader.readuntil(_END_OF_HEAD)
        proxy.check(head)
        if ssl is not None:
            await writer.start_tls(ssl, server_hostname=server_hostname)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.transport.abort()
        raise proxy.failed("hung up") from error
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _opened(proxy: HttpProxy) -> Connected:
    try:
        return await asyncio.open_connection(proxy.host, proxy.port, limit=_HEAD_LIMIT_BYTES)
    except OSError as error:
        raise proxy.failed(f"was not reached: {error.strerror or error}") from error


def connect(proxy: HttpProxy | None, address: str, *, timeout_seconds: float) -> socket.socket:
    """Connect to host:port, directly or through a proxy, in a thread; raises `OSError` and `ChannelError`."""
    if proxy is None:
        host, _, port = address.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), timeout_seconds)
    connection = socket.create_connection((proxy.host, proxy.port), timeout_seconds)
    try:
        connection.sendall(proxy.request(address))
        head = b""
        # Not one byte more, which would belong to the connection.
        while not head.endswith(_END_OF_HEAD) and len(head) < _HEAD_LIMIT_BYTES and (byte := connection.recv(1)):
            head += byte
        proxy.check(head)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_here(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
