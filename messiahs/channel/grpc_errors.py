"""Errors of gRPC as those of channels, in plain sentences."""

import asyncio
import re
from typing import Final

import grpc
import grpc.aio

from messiahs.channel.admission import SHUT_OFF, WHY_SHUT_OFF
from messiahs.core.model.texts import printable
from messiahs.errors import BeyondError, ChannelError, ProtocolError, RefusedError, UntrustedError

BEYOND: Final = grpc.StatusCode.ABORTED
"""A read could not be served now, by the peer or by a system beyond it."""
REFUSED: Final = grpc.StatusCode.FAILED_PRECONDITION
"""The peer, or a system beyond it, lets no bytes of the reader pass."""

_OTHER_CERTIFICATE: Final = "CERTIFICATE_VERIFY_FAILED"
_TOO_LARGE: Final = "message larger than max"
_PLAIN: Final = (
    ("failed to connect to all addresses", "it cannot be connected to"),
    ("Internal error from Core", "the connection was lost"),
    ("Socket closed", "the connection was lost"),
    ("Connection reset", "the connection was lost"),
    ("Stream removed", "the connection was lost"),
    ("ping timeout", "it did not answer for too long"),
    ("keepalive watchdog timeout", "it did not answer for too long"),
)
"""Words of gRPC, and what they mean to people."""
_ERRNO: Final = re.compile(r": ([A-Z][A-Za-z ]{1,60})( \(\d{1,4}\))?$")
TROUBLE: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError, asyncio.CancelledError)
"""Everything that a stream of gRPC raises."""


def text_of(error: BaseException) -> str:
    """Return the error of gRPC in one plain sentence; unknown words, such as those of a peer, follow its code."""
    if isinstance(error, grpc.aio.AioRpcError):
        details = error.details() or "no details"
        return _plain(details) or f"{error.code().name.lower()}: {printable(details)}"
    return printable(str(error)) or type(error).__name__


def _public_of(error: grpc.aio.AioRpcError) -> str:
    """Return the error without words that may contain an address."""
    return _plain(error.details() or "") or f"the stream ended ({error.code().name.lower()})"


def _plain(details: str) -> str:
    for words, plain in _PLAIN:
        if words in details:
            why = _ERRNO.search(details)
            return plain if why is None else f"{plain}: {why[1]}"
    return ""


class OtherCertificateError(ChannelError):
    """The system at an address has another certificate than the one that was checked."""


def read_error(error: BaseException) -> BaseException:
    """Return what `Channels.fetch` raises for an error of a read."""
    code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return PermissionError(text_of(error))
    if code is grpc.StatusCode.NOT_FOUND:
        return FileNotFoundError(text_of(error))
    if isinstance(error, grpc.aio.AioRpcError) and code in (BEYOND, REFUSED):
        return (BeyondError if code is BEYOND else RefusedError)(printable(error.details() or ""))
    return channel_error(error)


def channel_error(error: BaseException) -> BaseException:
    """Distinguish permanent errors, a message that is too large and a lack of trust, from temporary ones.

    A cancellation stays one, unless gRPC cancels the call because this module has closed its connection.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return error if task is None or task.cancelling() else ChannelError("this module closed the connection")
    if isinstance(error, grpc.aio.AioRpcError):
        # Quotas and a peer that wants fewer pings have the same code, and are temporary.
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (error.details() or ""):
            return ProtocolError(text_of(error))
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return ProtocolError("its release is too old for this")
        if error.code() is grpc.StatusCode.PERMISSION_DENIED and error.details() == SHUT_OFF:
            # Not for lack of trust, which would be remembered after the link is up again.
            return ChannelError(WHY_SHUT_OFF)
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            public = "it refuses this module"
            return UntrustedError(f"{public}: {printable(error.details() or '')}", public=public)
        if _OTHER_CERTIFICATE in (error.details() or ""):
            return OtherCertificateError("its certificate has changed; the new one is checked next")
        return ChannelError(text_of(error), public=_public_of(error))
    return ChannelError(text_of(error))
