"""The local API for joining: tokens, and the requests that an administrator decides (MESSIAHS 6.2)."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Literal

import msgspec
from aiohttp import web

from messiahs.core.model.instants import SECOND
from messiahs.core.model.texts import has_control, printable
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal
from messiahs.daemon.audit.entries import Entry, Kind
from messiahs.daemon.host.host import Host
from messiahs.daemon.membership.door import JoinDoor
from messiahs.daemon.membership.token_book import LONGEST_NS, WAITING, Token
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.errors import MessiahsError, explained
from messiahs.wire.limits import CERTIFICATE_LIMIT_BYTES

_TEXT_LIMIT, _SHOWN_LIMIT = 200, 80
_SHORTEST_S, _LONGEST_S = 1, LONGEST_NS // SECOND
_DAY_S = 24 * 3_600
_NOT_THE_OWNER = "only root and the user of this module may decide who joins it"
_PATTERN = re.compile(r"[a-z0-9.*?-]{1,255}")
_ADDRESS = re.compile(r"([!-~]{1,290}:[0-9]{1,5})?")


class _UnusableError(MessiahsError):
    """A request has a value that cannot be meant; the text says which and why."""


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token to make: names that match the pattern may join in a role with it, so many seconds long."""

    pattern: str = "*"
    role: Literal["child", "sibling"] = "child"
    expires_s: int = 3_600
    address: str = ""

    def check(self) -> None:
        """Raise an error that names the value with which no token can be made."""
        if not _PATTERN.fullmatch(self.pattern):
            names = "names have a-z, 0-9, dots and hyphens; in a pattern * stands for any text, ? for one character"
            raise _UnusableError(f"no name is like `{_shown(self.pattern)}`: {names}")
        if not _SHORTEST_S <= self.expires_s <= _LONGEST_S:
            raise _UnusableError(
                f"a token can be used for 1 s to {_LONGEST_S // _DAY_S} days, not for {self.expires_s} s"
            )
        if not _ADDRESS.fullmatch(self.address):
            raise _UnusableError(f"`{_shown(self.address)}` is no address: write HOST:PORT")


class DecisionBody(msgspec.Struct, forbid_unknown_fields=True):
    """The decision about a system that asks to join. `certificate` (PEM) was signed for it elsewhere."""

    name: str
    approve: bool
    text: str = ""
    certificate: Annotated[str, msgspec.Meta(max_length=CERTIFICATE_LIMIT_BYTES)] = ""


class RevokeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token that is not to be used any more: its id, or the beginning of it."""

    token: str


class JoinApi:
    """Only root and the module's own user may use it: with a token, a system joins."""

    def __init__(self, door: JoinDoor, host: Host) -> None:
        self._door, self._host = door, host

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.get("/v1/join", self._list),
            web.post("/v1/join/tokens", self._token),
            web.post("/v1/join/decide", self._decide),
            web.post("/v1/join/revoke", self._revoke),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        async def listed() -> Document:
            return self._document()

        return await self._answered(request, listed)

    async def _token(self, request: web.Request) -> web.Response:
        async def made() -> Document:
            body = await body_of(request, TokenBody)
            body.check()
            token, text = await self._door.make_token(
                pattern=body.pattern, lasts_ns=body.expires_s * SECOND, role=body.role, address=body.address
            )
            about = f"token {token.id[:8]} for a {token.role} with a name like {token.pattern}"
            self._host.note(Entry(Kind.MEMBER, "token made", by=caller_of(request), about=about))
            return {"token": text, **self._token_document(token)}

        return await self._answered(request, made)

    async def _decide(self, request: web.Request) -> web.Response:
        async def decided() -> Document:
            body = await body_of(request, DecisionBody)
            if has_control(body.text) or len(body.text) > _TEXT_LIMIT:
                raise _UnusableError(f"the text has at most {_TEXT_LIMIT} characters, and none is a control character")
            token = await self._door.decide(
                body.name, is_approved=body.approve, text=body.text, certificate=body.certificate.encode()
            )
            what = "join approved" if body.approve else "join denied"
            about = f"{body.name}, token {token.id[:8]}"
            self._host.note(Entry(Kind.MEMBER, what, by=caller_of(request), about=about, why=body.text))
            return self._token_document(token)

        return await self._answered(request, decided)

    async def _revoke(self, request: web.Request) -> web.Response:
        async def revoked() -> Document:
            token = await self._door.revoke((await body_of(request, RevokeBody)).token)
            self._host.note(Entry(Kind.MEMBER, "token revoked", by=caller_of(request), about=f"token {token[:8]}"))
            return self._document()

        return await self._answered(request, revoked)

    async def _answered(self, request: web.Request, handle: Callable[[], Awaitable[Document]]) -> web.Response:
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        try:
            return web.json_response(await handle())
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is not understood: {error}")
        except _UnusableError as error:
            return refusal(400, str(error))
        except MessiahsError as error:
            return refusal(409, str(error))
        except OSError as error:
            return refusal(409, explained(error))

    def _document(self) -> Document:
        book = self._door.book
        tokens = [self._token_document(each) for each in book.tokens()]
        return {"tokens": tokens, "requests": list(_requests(book.waiting()))}

    def _token_document(self, token: Token) -> Document:
        return {
            "id": token.id,
            "role": token.role,
            "pattern": token.pattern,
            "made_at": time_document(token.made_at),
            "expires_at": time_document(token.expires_at),
            "state": "expired" if self._door.book.has_expired(token) else token.phase.value,
            "used_by": token.asked.name if token.asked is not None else None,
            "text": token.text,
        }


def _shown(text: str) -> str:
    return printable(text[:_SHOWN_LIMIT])


def _requests(tokens: tuple[Token, ...]) -> Iterator[Document]:
    for token in tokens:
        if token.asked is not None and token.phase in WAITING:
            yield {
                "name": token.asked.name,
                "role": token.role,
                "token": token.id,
                "state": token.phase.value,
                "address": token.asked.address,
                "release": token.asked.release,
                "machine": dict(token.asked.machine),
                "key": token.asked.key,
                "needs_certificate": token.asked.needs_certificate,
                "certificate_request": token.asked.request,
                "asked_at": time_document(token.asked.at),
                "expires_at": time_document(token.expires_at),
            }
