"""This module becomes the child of another parent while it runs (MESSIAHS 5: a system may have several parents)."""

import asyncio
import logging
from pathlib import Path
from typing import Final, Protocol

from messiahs import __version__
from messiahs.channel.certificates.fingerprints import certificates_in, pem_of
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.membership.asking import ask_to_join
from messiahs.channel.membership.tokens import JoinToken
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import ModuleSettings
from messiahs.config.topology.borders import why_bypassed
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.membership.judging import Members
from messiahs.errors import MessiahsError
from messiahs.wire.codec import JoinAccept, JoinDeny, JoinPending, JoinRequest

_LOG: Final = logging.getLogger("messiahs.membership")


class Dialer(Members, Protocol):
    """The module, which can also get a neighbor that it dials."""

    def is_linked(self, name: SystemId) -> bool:
        """Whether there is a link with a neighbor."""

    async def add(self, neighbor: Neighbor, text: str, *, address: str = "") -> str:
        """Add a neighbor, or change its relations; return why that is not stored, or ""."""


class Parents:
    """Asks other modules of this site to take this one as their child."""

    def __init__(self, settings: ModuleSettings, members: Dialer) -> None:
        self._settings, self._members = settings, members

    async def join(self, token: JoinToken) -> str:
        """Ask the module of a token; return what is waited for, or "" when it is a parent.

        A parent without a link is asked, too: it may have removed this module. Raises a `MessiahsError` if it cannot
        become one, or is not reached. A repetition with the same token goes on.
        """
        known = self._members.neighbors().get(token.parent)
        if self._members.is_leaving(token.parent):
            raise MessiahsError(
                f"the link with {token.parent} is being ended: repeat this when it has ended (`messiahs module list`)"
            )
        if known is not None and known.is_parent and self._members.is_linked(token.parent):
            return ""
        await asyncio.to_thread(self._check, token, known)
        others = (each for name, each in self._members.neighbors().items() if name != token.parent)
        is_primary = not any(each.is_primary_parent for each in others)
        request = await asyncio.to_thread(self._request, is_primary=is_primary)
        answer = await ask_to_join(token, request, http_proxy=self._settings.connections.http_proxy)
        match answer:
            case JoinPending():
                return answer.text
            case JoinDeny():
                raise MessiahsError(f"{token.parent} denies it: {answer.text}")
            case JoinAccept():
                neighbor = Neighbor(
                    system=token.parent,
                    is_parent=True,
                    is_primary_parent=is_primary,
                    is_sibling=known is not None and known.is_sibling,
                )
                problem = await self._members.add(neighbor, "joined with a token", address=token.address)
                if problem:
                    raise MessiahsError(problem)
                _LOG.info("%s is a parent now", token.parent)
                return ""

    def _check(self, token: JoinToken, known: Neighbor | None) -> None:
        """Raise a `MessiahsError` unless the module of a token could become a parent of this one."""
        if token.federation != self._settings.federation:
            raise MessiahsError(f"the token is of the federation {token.federation}, not {self._settings.federation}")
        if token.role != "child":
            raise MessiahsError(f"the token is for a {token.role}: {token.parent} makes one for a child")
        if token.parent == self._settings.name:
            raise MessiahsError(f"{token.parent} is this module itself")
        if known is not None and known.is_child:
            raise MessiahsError(f"{token.parent} is a child of this module, and cannot be above it as well")
        parents = [name for name, each in self._members.neighbors().items() if each.is_parent]
        bypass = why_bypassed(
            self._settings.name, parents, behind_now=self._settings.borders, new=token.parent, behind_new=token.borders
        )
        if bypass:
            raise MessiahsError(bypass)
        if set(certificates_in(_read(self._settings.trust_file))).isdisjoint(certificates_in(token.roots)):
            raise MessiahsError(f"{token.parent} belongs to another site: link the sites in their topology files")

    def _request(self, *, is_primary: bool) -> JoinRequest:
        settings = self._settings
        try:
            key = _read(settings.key_file)
            _, wanted = make_request(federation=settings.federation, name=settings.name, key=key)
        except ValueError as error:
            raise MessiahsError(f"{settings.key_file}: {error}") from error
        # The first one is the module's own.
        certificate = b"".join(map(pem_of, certificates_in(_read(settings.certificate_file))[:1]))
        return JoinRequest(
            name=SystemId(settings.name),
            role=Relation.CHILD,
            certificate_request=wanted,
            address=settings.listen,
            release=__version__,
            certificate=certificate,
            is_primary=is_primary,
        )


def _read(file: Path) -> bytes:
    try:
        return read_regular(file)
    except OSError as error:
        raise MessiahsError(f"{file} cannot be read: {error.strerror}") from error
