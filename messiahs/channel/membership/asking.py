"""Asking a module with a token to let this system join (MESSIAHS 6.2)."""

from functools import partial
from pathlib import Path
from typing import Final

import grpc
import grpc.aio

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.pinning import Lookup
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import TrustedRoots
from messiahs.channel.grpc_errors import text_of
from messiahs.channel.grpc_options import client_options
from messiahs.channel.http_proxies import connected_through, proxy_for
from messiahs.channel.membership.service import MEMBERSHIP
from messiahs.channel.membership.tokens import JoinToken
from messiahs.errors import ChannelError, UntrustedError
from messiahs.wire.codec import JoinAnswer, JoinRequest, join_answer_from_bytes, join_request_to_bytes

_ANSWER_SECONDS: Final = 60.0
_SILENCE_SECONDS: Final = 15.0


async def ask_to_join(token: JoinToken, request: JoinRequest, *, http_proxy: str | None = None) -> JoinAnswer:
    """Send a request once and return the answer.

    Raises `UntrustedError` if another system than the one that made the token answers, and `ChannelError` if none
    does; `CodecError` for an answer that is malformed.
    """
    address, parent = token.address, token.parent
    tls = _material(token)
    lookup = Lookup(request.name, tls, TrustedRoots(tls, token.federation))
    proxy = proxy_for(address, http_proxy)
    try:
        pinned = await lookup.certificate_of(parent, address, connect=partial(connected_through, proxy, address))
    except UntrustedError as error:
        raise UntrustedError(f"{address} is not the module {parent} that made this token: {error.public}") from error
    except ChannelError as error:
        raise ChannelError(_unanswered(error, token), public=error.public) from error
    if key_fingerprint(certificates_in(pinned)[0]) != token.parent_key:
        raise UntrustedError(f"{address} has another key than the module {parent} that made this token")
    credentials = grpc.ssl_channel_credentials(pinned, token.key, token.certificate)
    name = ("grpc.ssl_target_name_override", str(parent))
    through = (("grpc.enable_http_proxy", 0),) if proxy is None else (("grpc.http_proxy", proxy.url),)
    async with grpc.aio.secure_channel(
        address, credentials, options=(*client_options(_SILENCE_SECONDS), name, *through)
    ) as channel:
        call = channel.unary_unary(f"/{MEMBERSHIP}/Join", None, None)
        try:
            content = await call(join_request_to_bytes(request), timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise _problem(error, token) from error
    return join_answer_from_bytes(content)


def _material(token: JoinToken) -> TlsMaterial:
    file = Path("the token")
    try:
        own = OwnCertificate.read(token.certificate, file)
    except ValueError as error:
        raise ChannelError(f"the certificate in the token cannot be read: {error}") from error
    return TlsMaterial(
        own=own, certificate=token.certificate, key=token.key, trust=token.roots, trust_file=Path("the token")
    )


def _unanswered(error: ChannelError, token: JoinToken) -> str:
    if "hung up" in error.public:
        return f"{token.parent} at {token.address} does not know this token; was its state made anew since?"
    return f"{token.parent} is not reached: {error}"


def _problem(error: grpc.aio.AioRpcError, token: JoinToken) -> ChannelError:
    text = f"{token.parent} at {token.address}: {text_of(error)}"
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            return UntrustedError(f"{token.parent} at {token.address} has a release that nobody can join")
        case grpc.StatusCode.PERMISSION_DENIED:
            return UntrustedError(text)
        case _:
            return ChannelError(text)
