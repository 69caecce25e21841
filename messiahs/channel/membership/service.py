"""The service `Membership` at the port of a module: who has a token may ask to join (MESSIAHS 6.2)."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import grpc
import grpc.aio

from messiahs.channel.certificates.trusted_roots import Presented
from messiahs.channel.membership.authority import token_in
from messiahs.core.model.ids import SystemId
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    JoinAnswer,
    JoinDeny,
    JoinRequest,
    join_answer_to_bytes,
    join_request_from_bytes,
)

MEMBERSHIP: Final = "messiahs.wire.v1.Membership"
_AT_ONCE: Final = 16
"""Requests that are decided at the same time."""
_PAUSE_SECONDS: Final = 0.1
"""A token is served again after so long."""
_REFUSAL: Final = "only a token of this module can be used to join it; `messiahs join token` makes one"

_Context = grpc.aio.ServicerContext[bytes, bytes]


class Door(Protocol):
    """Decides who joins this module."""

    def roots(self) -> bytes:
        """Return the certificate (PEM) of the authority that signs tokens; empty without one. Called by any thread."""

    def mark(self) -> bytes:
        """Return the mark of that authority; empty without one."""

    async def answer(self, token: str, request: JoinRequest) -> JoinAnswer:
        """Answer the holder of a token, which is an id that the authority has signed."""


class ClosedDoor:
    """The door of a module that nobody can join."""

    def roots(self) -> bytes:
        """Return no authority."""
        return b""

    def mark(self) -> bytes:
        """Return no mark."""
        return b""

    async def answer(self, token: str, request: JoinRequest) -> JoinAnswer:
        """Deny."""
        del token, request
        return JoinDeny(text=_REFUSAL)


class MembershipService:
    """Handles the calls of those who want to join. A token has one call at a time, and few tokens have one."""

    def __init__(self, door: Door, *, federation: str, name: SystemId, on_refused: Callable[[str, str], None]) -> None:
        self._door, self._federation, self._name, self._on_refused = door, federation, name, on_refused
        self._busy: set[str] = set()

    def handler(self) -> "grpc.GenericRpcHandler[bytes, bytes]":
        """Return the service."""
        join = grpc.unary_unary_rpc_method_handler(self.join)
        return grpc.method_handlers_generic_handler(MEMBERSHIP, {"Join": join})

    async def join(self, content: bytes, context: _Context) -> bytes:
        """Decide on a request."""
        presented = Presented.to_grpc(context.auth_context())
        token = token_in(presented, federation=self._federation, parent=self._name, mark=self._door.mark)
        if not token:
            self._on_refused(context.peer(), _REFUSAL)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSAL)
        if token in self._busy or len(self._busy) >= _AT_ONCE:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "others are asking; try again in a second")
        self._busy.add(token)
        try:
            answer = await self._door.answer(token, join_request_from_bytes(content))
        except CodecError as error:
            answer = JoinDeny(text=str(error))
        except Exception as error:  # noqa: BLE001 - a bug goes to the loop's handler, and gRPC would send its text
            asyncio.get_running_loop().call_exception_handler({"message": "a request to join", "exception": error})
            await context.abort(grpc.StatusCode.INTERNAL, "an internal error")
        finally:
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._busy.discard, token)
        return join_answer_to_bytes(answer)
