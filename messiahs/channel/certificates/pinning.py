"""Dialing: a peer is checked before gRPC is used, and gRPC then trusts its certificate alone.

gRPC does not show a client the certificate of its server, whose URI only we can check. So a connection is opened for
the check first. The certificate found there is the only one that the channel of gRPC accepts afterwards, so that nobody
else can answer in between.
"""

import asyncio
import os
import ssl
from errno import errorcode
from typing import Final, Protocol

from messiahs.channel.certificates.in_force import TlsInForce, in_force
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import Presented, TrustedRoots
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import ChannelError, UntrustedError

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Connect(Protocol):
    """Connects to a system over TLS."""

    async def __call__(self, *, ssl: ssl.SSLContext, server_hostname: str) -> Connected:
        """Return the connection after its handshake."""


ANSWER_SECONDS: Final = 10.0
_PROTOCOL: Final = "h2"


class Lookup:
    """Looks at the certificates of systems that this module dials."""

    def __init__(self, own: SystemId, tls: TlsMaterial | TlsInForce, trusted: TrustedRoots) -> None:
        self._own, self._in_force, self._trusted = own, in_force(tls), trusted

    @property
    def _tls(self) -> TlsMaterial:
        return self._in_force.now

    async def certificate_of(self, peer: SystemId, address: str, *, connect: Connect) -> bytes:
        """Return the certificate (PEM) of a system to which a function connects; errors name the address.

        Raises `UntrustedError` if the certificate is not one of this system; otherwise a `ChannelError`, also if the
        system does not accept the certificate of this module, or if no system can have such an address or name.
        """
        try:
            # TLS would refuse such a name after the connection was made, which would then stay open.
            peer.encode("idna")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._look(peer, connect)
        except TimeoutError as error:
            public = f"no answer within {ANSWER_SECONDS:.0f} s"
            raise ChannelError(f"{address}: {public}", public=public) from error
        except ssl.SSLCertVerificationError as error:
            raise self._invalid(error, peer) from error
        except OSError as error:
            raise ChannelError(f"{address}: {_reason(error)}", public=_reason(error)) from error
        except (ValueError, OverflowError) as error:
            # Another system chose them.
            text = f"{address}: {peer} cannot be dialed, as this is no address, or that no name"
            raise ChannelError(text, public="it has no address that can be dialed") from error

    async def _look(self, peer: SystemId, connect: Connect) -> bytes:
        context = self._tls.context(ssl.PROTOCOL_TLS_CLIENT, roots=self._tls.roots_for(peer))
        context.set_alpn_protocols([_PROTOCOL])
        reader, writer = await connect(ssl=context, server_hostname=str(peer))
        try:
            presented = Presented.to_ssl(writer.get_extra_info("ssl_object"))
            found = self._trusted.check(presented, is_server=True)
            if found.system != peer:
                raise UntrustedError(f"its certificate names {found.system} instead of {peer}")
            if not await _is_answered(reader):
                public = "it hung up on this module"
                raise ChannelError(f"{public}, {self._why_hung_up()}", public=public)
        finally:
            writer.transport.abort()
        return ssl.DER_cert_to_PEM_cert(presented.chain[0]).encode()

    def _invalid(self, error: ssl.SSLCertVerificationError, peer: SystemId) -> UntrustedError:
        if "issuer" in error.verify_message or "self-signed" in error.verify_message:
            public = "its certificate is signed by no root recorded for it"
            return UntrustedError(f"{public}: {self._remedy(peer)}", public=public)
        return UntrustedError(f"its certificate is not valid: {printable(error.verify_message)}")

    def _why_hung_up(self) -> str:
        if self._tls.own.problem():
            return f"because {self._tls.own.note()}"
        own = self._own
        remedy = f"give {self._tls.trust_file} to its administrator, as a root for `{own}`"
        return f"because it does not trust it ({remedy}), or its topology does not name `{own}` as its neighbor"

    def _remedy(self, peer: SystemId) -> str:
        """Return what makes a peer trusted; a root of another site never belongs among the roots of this one."""
        files = " or ".join(map(str, self._tls.files_for(peer)))
        if files:
            return f"replace {files} (its `trust:` in the topology) with the root.pem of its site"
        text = "if it belongs to another site, name a copy of the root.pem of that site as its `trust:` in the topology"
        return f"it needs one that is signed by a root in {self._tls.trust_file}; {text}"


def _reason(error: OSError) -> str:
    """Return the system's text; asyncio puts another one into `strerror`."""
    number = error.errno or 0
    if number in errorcode and not isinstance(error, ssl.SSLError):
        return os.strerror(number)
    return printable(error.strerror or str(error))


async def _is_answered(reader: asyncio.StreamReader) -> bool:
    """Wait for the first byte: a server of HTTP/2 sends it when it has accepted the certificate of its client."""
    try:
        return bool(await reader.read(1))
    except (ConnectionError, ssl.SSLError):
        return False
