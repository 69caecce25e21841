"""Renewal of the module's certificate in the last third of its lifetime, for the same key."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from messiahs.channel.certificates.fingerprints import certificates_in, pem_of
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import ROOT_FILE, SiteRoot
from messiahs.channel.periodic_jobs import repeat
from messiahs.config.whole_files import write_whole
from messiahs.core.model.texts import printable
from messiahs.daemon.certificates.watching import CertificateFiles
from messiahs.errors import CertificateError

PERIOD_SECONDS: Final = 60.0
FIRST_RETRY_SECONDS: Final = 20.0
LAST_RETRY_SECONDS: Final = 3_600.0
"""After each failure in succession the wait doubles, up to this."""
_LOG = logging.getLogger(__name__)
AskForRenewal = Callable[[bytes, bytes], Awaitable[bytes]]
"""Asks a parent for a certificate (PEM) with a request and the present certificate; raises `CertificateError`."""


class Renewal:
    """Renews the certificate of one module (mutable). Belongs to the event loop.

    Where the key of the site's root lies in the module's state, the module signs by itself; elsewhere it asks a parent.
    """

    def __init__(
        self, files: CertificateFiles, tls: TlsInForce, *, federation: str, name: str, ask: AskForRenewal | None = None
    ) -> None:
        self._files, self._tls, self._federation, self._name, self._ask = files, tls, federation, name, ask

    async def go_on(self) -> None:
        """Renew the certificate whenever it is due, until this is cancelled."""
        retries = (FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS)
        failure = "the certificate is not renewed"
        await repeat(self._renew_if_due, period_seconds=PERIOD_SECONDS, failure=failure, retries_seconds=retries)

    async def renew(self) -> bool:
        """Renew the certificate now, use it, and return whether it is another one.

        A `CertificateError` says why that is impossible. A parent returns the present one before the last third of its
        lifetime. What cannot be used is not written.
        """
        # A root that was added just now vouches for what it signs.
        await self._files.check()
        now = self._tls.now
        if now.revocations.holds_any(now.certificate):
            raise CertificateError("the certificate of this module was revoked: a revoked one is not renewed")
        try:
            _, request = make_request(federation=self._federation, name=self._name, key=now.key)
        except ValueError as error:
            raise CertificateError(f"the key of this module cannot be used: {error}") from error
        directory = site_directory(now.trust_file)
        # The first one in the file is the module's own.
        present = certificates_in(now.certificate)[0]
        if directory is not None:
            made = await asyncio.to_thread(_signed, directory, request, name=self._name, present=present)
        elif self._ask is not None:
            made = await self._asked(self._ask, request, pem_of(present))
        else:
            raise CertificateError(f"this module has no parent to ask: {signed_by_hand(self._name)}")
        problem = await asyncio.to_thread(self._problem_with, made)
        if problem:
            raise CertificateError(f"the new certificate is of no use: {printable(problem)}")
        await asyncio.to_thread(write_whole, now.own.file, made)
        await self._files.check()
        if self._tls.now.certificate != made:
            raise CertificateError(f"the new certificate is not used: {printable(self._files.problem)}")
        is_another = certificates_in(made)[0] != present
        done = "was renewed" if is_another else "is kept until its last third"
        _LOG.info("the certificate %s, and is valid until %s", done, self._tls.now.own.ends_at)
        return is_another

    async def _asked(self, ask: AskForRenewal, request: bytes, present: bytes) -> bytes:
        try:
            return await ask(request, present)
        except CertificateError as error:
            raise CertificateError(f"{error}; without a parent, {signed_by_hand(self._name)}") from error

    def _problem_with(self, made: bytes) -> str:
        from messiahs.channel.certificates.renewals import problem_with_new  # noqa: PLC0415 - an expensive import

        now = self._tls.now
        return problem_with_new(made, key=now.key, roots=now.trust, federation=self._federation, name=self._name)

    async def _renew_if_due(self) -> None:
        if self._tls.now.own.is_due():
            await self.renew()


def signed_by_hand(name: str) -> str:
    """Return how an administrator brings a module a certificate that no other module renews."""
    return (
        f"make a request here (`messiahs certificate request {name}`), and have it signed where the site's root.key is "
        f"(`messiahs certificate sign {name}.csr`)"
    )


def site_directory(trust_file: Path) -> Path | None:
    """Return STATE/FEDERATION if the key of the root in this file is there, too."""
    directory = trust_file.parent.parent
    return directory if trust_file.name == ROOT_FILE and SiteRoot.is_at(directory) else None


def _signed(directory: Path, request: bytes, *, name: str, present: bytes) -> bytes:
    return SiteRoot.load(directory).renew_here(request, name, present=present)
