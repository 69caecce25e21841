"""The door of a module: its tokens are made here, and whoever asks with one is answered here (MESSIAHS 6.2).

A token belongs to the first key that asks with it and may be granted. The same key gets the same answer when it
repeats its request, so a newcomer or a parent that was killed in between loses nothing: the certificate is stored with
the token before the neighbor is added, and the neighbor before the answer goes out.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.requests import plain_request, requested_key
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.jobs import Jobs
from messiahs.channel.membership.authority import JoinAuthority, mark_of
from messiahs.channel.membership.tokens import ROLES, JoinToken
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import ModuleSettings
from messiahs.core.interface.policies import Calendar, Randomness, Refused
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.texts import printable
from messiahs.daemon.membership.judging import Members, as_neighbor, is_member, problem_with, verdict
from messiahs.daemon.membership.token_book import REQUEST_LIMIT, WAITING, Asked, Phase, Token, TokenBook
from messiahs.errors import CertificateError, MessiahsError, StoreError
from messiahs.wire.codec import JoinAccept, JoinAnswer, JoinDeny, JoinPending, JoinRequest

_LOG = logging.getLogger("messiahs.membership")
AGAIN_NS: Final = 2 * SECOND
"""A newcomer that waits for a decision asks again after this time."""
_GIVEN: Final = (Phase.ACCEPTED, Phase.ADDED)
_SHOWN: Final = "`messiahs join list` shows the ids"
_UNKNOWN: Final = "this token is not known: it has expired or was revoked, or the module lost its state"


class JoinDoor:
    """Decides who joins a module (mutable). Requests are decided one after the other.

    `on_refused` gets the holder of a token and why nothing is given to it: it may ask ten times in a second.
    """

    def __init__(
        self,
        settings: ModuleSettings,
        members: Members,
        *,
        calendar: Calendar,
        randomness: Randomness,
        on_refused: Callable[[str, str], None],
    ) -> None:
        self._settings, self._members = settings, members
        self._calendar, self._randomness, self._on_refused = calendar, randomness, on_refused
        folder = settings.directory / "join"
        self._authority, self.book = JoinAuthority(folder), TokenBook(folder / "tokens.json")
        self._one, self._answers = asyncio.Lock(), Jobs()
        self._learn()

    def roots(self) -> bytes:
        """Return the certificate (PEM) of the authority for tokens; empty without one."""
        return self._roots

    def mark(self) -> bytes:
        """Return the mark of that authority; empty without one."""
        return self._mark

    async def make_token(
        self, *, pattern: str, lasts_ns: int, role: str = "child", address: str = ""
    ) -> tuple[Token, str]:
        """Make a token and return it with its text; a `MessiahsError` if that is not possible."""
        async with self._one:
            now = self.book.now()
            expires_at = Instant(now + lasts_ns)
            token = Token(id=secrets.token_hex(16), role=role, pattern=pattern, made_at=now, expires_at=expires_at)
            return token, await asyncio.to_thread(self._made, token, address or self._settings.listen)

    async def decide(self, name: str, *, is_approved: bool, text: str = "", certificate: bytes = b"") -> Token:
        """Approve or deny the request that waits under a name, and return its token; a `MessiahsError` explains."""
        async with self._one:
            return await asyncio.to_thread(self._decide, name, is_approved, text, certificate)

    async def revoke(self, token: str) -> str:
        """Remove a token by its id, or by the beginning of one, and return the id; `MessiahsError` if there is none."""
        async with self._one:
            found = [each.id for each in self.book.tokens() if token and each.id.startswith(token)]
            if not found:
                raise MessiahsError(f"no token has an id that begins with `{printable(token[:32])}`: {_SHOWN}")
            if len(found) > 1:
                raise MessiahsError(
                    f"{len(found)} tokens have an id that begins with `{token}`: add more of it; {_SHOWN}"
                )
            await asyncio.to_thread(self.book.remove, found[0])
        _LOG.info("the token %s is revoked", found[0])
        return found[0]

    async def answer(self, token: str, request: JoinRequest) -> JoinAnswer:
        """Answer the holder of a token; what that changes is stored whole, also if the holder hangs up meanwhile."""
        return await asyncio.shield(self._answers.begin(self._answer(token, request)))

    async def _answer(self, token: str, request: JoinRequest) -> JoinAnswer:
        async with self._one:
            try:
                answer = await self._answered(token, request)
            except CertificateError as error:
                answer = JoinDeny(text=str(error))
            except (StoreError, OSError) as error:
                self._on_refused(f"the token {token[:8]}", f"{request.name} cannot be answered: {error}")
                answer = JoinPending(
                    text="the module cannot store the request now; its log says why", again_ns=AGAIN_NS
                )
        if isinstance(answer, JoinDeny):
            self._on_refused(f"the token {token[:8]}", f"{request.name} may not join: {answer.text}")
        return answer

    async def _answered(self, token_id: str, request: JoinRequest) -> JoinAnswer:
        key = await asyncio.to_thread(self._key_of, request)
        token = self.book.find(token_id)
        if token is None:
            return JoinDeny(text=_UNKNOWN)
        problem = self._problem(token, request, key)
        if problem:
            return JoinDeny(text=problem)
        if token.phase in _GIVEN:
            return await self._added(token, request)
        if self._members.is_leaving(request.name):
            # What its end leaves may speak against the request, so nothing is given before.
            return JoinPending(text=f"the link with {request.name} is being ended", again_ns=AGAIN_NS)
        # The policy belongs to the event loop, and the disk to other threads.
        step = self._judged(token, request, key)
        made = step if isinstance(step, JoinDeny) else await asyncio.to_thread(step)
        return await self._added(made, request) if isinstance(made, Token) else made

    def _problem(self, token: Token, request: JoinRequest, key: str) -> str:
        """Return why a request is denied whatever the policy says; "" if nothing speaks against it."""
        if token.asked is not None and (token.asked.key, token.asked.name) != (key, request.name):
            return f"this token was used by {token.asked.name} already, with its own key"
        if request.role is not ROLES.get(token.role):
            return f"the token is for a {token.role}"
        if token.phase is Phase.ADDED:
            return ""
        if token.expires_at <= self.book.now():
            return "this token has expired by the clock of the module that made it"
        if token.phase is Phase.DENIED:
            return token.text or "an administrator has denied it"
        if token.phase is Phase.ACCEPTED or self._members.is_leaving(request.name):
            return ""
        return problem_with(request, token, members=self._members)

    def _judged(self, token: Token, request: JoinRequest, key: str) -> JoinDeny | Callable[[], JoinAnswer | Token]:
        """Return a denial by the policy, or what is to be stored and is then the answer or the accepted token."""
        said = None
        if token.phase is not Phase.APPROVED:
            now = self._calendar(self.book.now())
            said = verdict(request, self._members, now=now, randomness=self._randomness)
        if isinstance(said, Refused):
            return JoinDeny(rule=said.rule, text=said.text or "the policy refuses it")
        needs_certificate = not (request.certificate or token.certificate or self._has_root())
        asked = self._asked(request, key, needs_certificate=needs_certificate)
        if token.asked is not None:
            # Each run of the newcomer signs anew. An administrator may have brought this request to the root's key.
            asked = replace(asked, at=token.asked.at, request=token.asked.request)
        held = replace(token, asked=asked)
        if needs_certificate or (said is None and token.phase is not Phase.APPROVED):
            return partial(self._put_aside, token, held)
        return partial(self._certified, held, request)

    def _certified(self, token: Token, request: JoinRequest) -> Token:
        """Store a token with the certificate for its holder, who is accepted; none is made for one that has one."""
        certificate = token.certificate
        if not request.certificate and not certificate:
            certificate = self._site_root().sign(request.certificate_request, request.name).decode("ascii")
        return self.book.decide(token, Phase.ACCEPTED, certificate=certificate)

    def _site_root(self) -> SiteRoot:
        try:
            return SiteRoot.load(self._settings.state_directory)
        except CertificateError as error:
            # The text names files of this host, and the newcomer may ask again.
            raise StoreError(str(error)) from error

    def _put_aside(self, token: Token, held: Token) -> JoinAnswer:
        """Let a request wait for an administrator."""
        assert held.asked is not None
        name = held.asked.name
        if token.phase not in WAITING:
            former = self.book.waiting(name)
            if any(each.asked is not None and each.asked.key != held.asked.key for each in former):
                text = (
                    f"`messiahs join deny {name}` at {self._members.system} ends that request; or choose another name"
                )
                return JoinDeny(text=f"a system with another key asks to join as {name} already: {text}")
            for each in former:
                self.book.decide(each, Phase.DENIED, text=f"{name} has asked again with another token")
            if len(self.book.waiting()) >= REQUEST_LIMIT:
                return JoinPending(text=f"{REQUEST_LIMIT} other requests wait for an administrator", again_ns=AGAIN_NS)
            self.book.decide(held, Phase.PENDING)
            _LOG.info("%s asks to join: `messiahs join approve %s` or `deny` decides", name, name)
        elif held != token:
            # It was started again with other options, and people see what it asks for now.
            self.book.put(held)
        what = "sign its certificate" if token.phase is Phase.APPROVED else "decide (`messiahs join list`)"
        return JoinPending(text=f"an administrator of {self._members.system} has to {what}", again_ns=AGAIN_NS)

    async def _added(self, token: Token, request: JoinRequest) -> JoinAnswer:
        """Add the neighbor unless that was done, and return what it gets."""
        known = self._members.neighbors().get(request.name)
        if token.phase is Phase.ADDED and not is_member(known, token.role):
            return JoinDeny(text=f"{request.name} joined {self._members.system} with this token, and was removed since")
        if token.phase is not Phase.ADDED:
            problem = await self._members.add(as_neighbor(request, known), f"joined with the token {token.id[:8]}")
            if problem:
                return JoinPending(text=problem, again_ns=AGAIN_NS)
            await asyncio.to_thread(self.book.decide, token, Phase.ADDED)
            _LOG.info("%s has joined as %s", request.name, token.role)
        roots = await asyncio.to_thread(read_regular, self._settings.trust_file)
        return JoinAccept(
            certificate=token.certificate.encode(), roots=roots, update_period_ns=self._settings.update_period_ns
        )

    def _key_of(self, request: JoinRequest) -> str:
        """Return the fingerprint of the key of a request; a `CertificateError` if what it shows is of no use.

        Afterwards the tokens are in memory.
        """
        self.book.tokens()
        federation, name = self._settings.federation, request.name
        try:
            key = requested_key(request.certificate_request, federation=federation, name=name)
            if request.certificate:
                self._check_certificate(request.certificate, name, key=key)
        except ValueError as error:
            raise CertificateError(str(error)) from error
        return key.hex()

    def _check_certificate(self, certificate: bytes, name: str, *, key: bytes) -> None:
        """Raise a `CertificateError` unless a certificate (PEM) is valid, of this site, and for this name and key."""
        from messiahs.channel.certificates.renewals import name_of_valid, shown_certificate  # noqa: PLC0415 - expensive

        roots, shown = read_regular(self._settings.trust_file), shown_certificate(certificate)
        named = name_of_valid(shown, roots=roots, federation=self._settings.federation)
        if named != name:
            raise CertificateError(f"the certificate is that of {printable(named)}, not of {name}")
        if key_fingerprint(shown) != key:
            raise CertificateError("the certificate is not for the key of the request")
        if self._members.is_revoked(certificate):
            raise CertificateError(f"the certificate of {name} was revoked")

    def _has_root(self) -> bool:
        return SiteRoot.is_at(self._settings.state_directory)

    def _asked(self, request: JoinRequest, key: str, *, needs_certificate: bool) -> Asked:
        return Asked(
            name=request.name,
            key=key,
            at=self.book.now(),
            request=plain_request(request.certificate_request).decode("ascii"),
            address=request.address,
            release=request.release,
            machine=request.machine,
            needs_certificate=needs_certificate,
        )

    def _made(self, token: Token, address: str) -> str:
        """Store a token, and return its text."""
        if not address:
            raise MessiahsError(f"nobody can dial {self._members.system}, so nobody can join it")
        federation, parent = self._settings.federation, SystemId(self._settings.name)
        made = self._authority.sign(federation=federation, parent=parent, token=token.id)
        own = certificates_in(read_regular(self._settings.certificate_file))[0]
        text = JoinToken(
            address=address,
            federation=federation,
            parent=parent,
            parent_key=key_fingerprint(own),
            roots=read_regular(self._settings.trust_file),
            certificate=made.certificate,
            key=made.key,
            role=token.role,
            borders=(parent,) if self._settings.is_border else tuple(map(SystemId, self._settings.borders)),
        ).to_text()
        self.book.put(token)
        self._learn()
        _LOG.info("the token %s is made, for a %s with a name like %s", token.id, token.role, token.pattern)
        return text

    def _decide(self, name: str, is_approved: bool, text: str, certificate: bytes) -> Token:  # noqa: FBT001 - private
        found = self.book.waiting(name)
        if not found or found[0].asked is None:
            raise MessiahsError(f"no system asks to join as {name}")
        token, asked = found[0], found[0].asked
        if not is_approved:
            return self.book.decide(token, Phase.DENIED, text=text)
        if certificate:
            self._check_certificate(certificate, name, key=bytes.fromhex(asked.key))
        elif self._has_root():
            try:
                self._site_root().check(asked.request.encode(), name)
            except CertificateError as error:
                raise MessiahsError(f"{error}, and `join approve {name} --certificate FILE` gives it") from error
        elif asked.needs_certificate:
            text = f"no key of a root is here: sign the request (`messiahs join list --request {name}`)"
            raise MessiahsError(f"{text}, and give the certificate with --certificate FILE")
        return self.book.decide(token, Phase.APPROVED, certificate=certificate.decode("ascii"))

    def _learn(self) -> None:
        try:
            self._roots = self._authority.certificate()
            self._mark = mark_of(self._roots)
        except (StoreError, ValueError) as error:
            _LOG.error("nobody can join: %s", error)
            self._roots = self._mark = b""
