"""Dialing: a peer is checked before gRPC is used, and gRPC then trusts its certificate alone.

gRPC does not show a client the certificate of its server, whose URI only we can check. So a connection is opened for
the check first. The certificate found there is the only one that the channel of gRPC accepts afterwards, so that nobody
else can answer in between.
"""

import asyncio
import ssl
from typing import Final

from messiahs.channel.tls import TlsMaterial
from messiahs.channel.trusted_roots import Presented, TrustedRoots
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import ChannelError, UntrustedError

ANSWER_SECONDS: Final = 10.0
_PROTOCOL: Final = "h2"


async def certificate_at(address: str, *, tls: TlsMaterial, trusted: TrustedRoots, peer: SystemId) -> bytes:
    """Return the certificate (PEM) of a system that listens at host:port.

    Raises `UntrustedError` if the certificate is not one of this system; otherwise a `ChannelError`, also if the system
    does not accept the certificate of this module.
    """
    context = tls.context(ssl.PROTOCOL_TLS_CLIENT, roots=tls.roots_for(peer))
    context.set_alpn_protocols([_PROTOCOL])
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _checked(host.strip("[]"), int(port), context=context, trusted=trusted, peer=peer)
    except TimeoutError as error:
        raise ChannelError(f"{address}: no answer within {ANSWER_SECONDS:.0f} s") from error
    except ssl.SSLCertVerificationError as error:
        raise UntrustedError(_why_invalid(error)) from error
    except OSError as error:
        raise ChannelError(f"{address}: {error.strerror or error}") from error


async def _checked(host: str, port: int, *, context: ssl.SSLContext, trusted: TrustedRoots, peer: SystemId) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=str(peer))
    try:
        presented = Presented.to_ssl(writer.get_extra_info("ssl_object"))
        found = trusted.check(presented, is_server=True)
        if found.system != peer:
            raise UntrustedError(f"its certificate names {found.system} instead of {peer}")
        if not await _is_answered(reader):
            raise ChannelError("it ended the connection; most likely it records no root that vouches for this module")
    finally:
        writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(presented.chain[0]).encode()


async def _is_answered(reader: asyncio.StreamReader) -> bool:
    """Wait for the first byte: a server of HTTP/2 sends it when it has accepted the certificate of its client."""
    try:
        return bool(await reader.read(1))
    except (ConnectionError, ssl.SSLError):
        return False


def _why_invalid(error: ssl.SSLCertVerificationError) -> str:
    if "issuer" in error.verify_message or "self-signed" in error.verify_message:
        return "its certificate is signed by no root recorded for it"
    return f"its certificate is not valid: {printable(error.verify_message)}"
