"""Why a host could not be asked over HTTP, for people."""

import os

from aiohttp import ClientConnectorCertificateError


def explained_http(error: Exception, *, seconds: float) -> str:
    """Return what went wrong within `seconds`, without the URL, in which there may be a secret."""
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    if isinstance(error, ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "")
        return f"its certificate is not valid{f': {why}' if why else ''}"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # The text of asyncio has the address instead of what went wrong.
        return os.strerror(error.errno).lower()
    return getattr(error, "strerror", None) or type(error).__name__
