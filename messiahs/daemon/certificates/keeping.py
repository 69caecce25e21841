"""The certificates of a live module, from its settings: what is in force, its files, and its renewal."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from messiahs.channel.certificate_exchange import CertificateExchange
from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.issued import alone
from messiahs.channel.certificates.revocations import Revocations, read_revocations
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import TlsFiles, TlsMaterial, load
from messiahs.channel.certificates.trusted_roots import own_key
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import ModuleSettings
from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.daemon.audit.entries import Entry, Kind
from messiahs.daemon.certificates.renewing import Renewal, site_directory
from messiahs.daemon.certificates.watching import CertificateFiles
from messiahs.daemon.storage.documents import Document
from messiahs.errors import CertificateError
from messiahs.wire.certificates import RenewRequest

_LOG = logging.getLogger(__name__)


class Certificates:
    """Everything about the certificates of one module (mutable). Raises a `ChannelError` if a file is of no use.

    `parents` and `siblings` return the names of its present parents, the primary one first, and of its siblings.
    """

    def __init__(
        self,
        settings: ModuleSettings,
        *,
        parents: Callable[[], Sequence[SystemId]],
        siblings: Callable[[], Sequence[SystemId]],
        on_noted: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        """Tell `on_noted`, for the audit log, which certificates are in force, renewed and revoked."""
        files = _tls_files(settings)
        self._parents, self._siblings, self._revoked_file = parents, siblings, files.revoked_file
        self._on_noted = on_noted
        self.tls = TlsInForce(load(files))
        federation, name = settings.federation, settings.name
        self.files = CertificateFiles(files, self.tls, federation=federation, name=name, on_changed=self._note)
        self.renewal = Renewal(self.files, self.tls, federation=federation, name=name, ask=self._ask_for_own)
        self.exchange = CertificateExchange(self.tls, self)

    async def take_revocations(self, pem: bytes) -> int:
        """Use a list of revoked certificates from a neighbor if it is newer, and store it; return its number."""
        read = await asyncio.to_thread(read_revocations, pem, self.tls.now.trust)
        now = self.tls.now
        if read.number > now.revocations.number:
            _LOG.warning("%d certificates are revoked, by list %d of a neighbor", len(read.serials), read.number)
            self.tls.use(replace(now, revocations=read))
            self._note(self.tls.now)
            try:
                await asyncio.to_thread(store_revocations, self._revoked_file, read, now.trust)
            except OSError as error:
                _LOG.warning("%s cannot be written: %s; copy it there", self._revoked_file, error.strerror)
        return read.number

    async def renewed(self, request: RenewRequest) -> bytes:
        """Return another certificate for a module below: signed here, or by a module above.

        Before the last third of its lifetime this is the present one, which the audit log does not mention.
        """
        directory = site_directory(self.tls.now.trust_file)
        if directory is None:
            parents, hops = self._parents(), request.hops + 1
            return await self._ask(parents, request.certificate_request, request.certificate, hops=hops)
        made = await asyncio.to_thread(_renewed, directory, request)
        (found,) = certificates_in(made)
        if found not in certificates_in(request.certificate):
            about = f"the certificate {certificate_fingerprint(found).hex()} of a module below"
            self._on_noted(Entry(Kind.MEMBER, "certificate renewed", about=about))
        return made

    def _note(self, found: TlsMaterial) -> None:
        revoked = f"{len(found.revocations.serials)} revoked by list {found.revocations.number}"
        why = f"valid until {found.own.ends_at.isoformat()}; {revoked}"
        self._on_noted(Entry(Kind.MEMBER, "certificates in force", about=own_key(found).hex(), why=why))

    async def _ask_for_own(self, request: bytes, certificate: bytes) -> bytes:
        # A system that joined as a sibling may have no parent. Requests of others climb, so none goes round.
        return await self._ask(self._parents() or self._siblings(), request, certificate, hops=0)

    async def _ask(self, systems: Sequence[SystemId], request: bytes, /, certificate: bytes, *, hops: int) -> bytes:
        problems = []
        for system in systems:
            try:
                return await self.exchange.ask(system, request, certificate, hops=hops)
            except CertificateError as error:
                problems.append(str(error))
        raise CertificateError("; ".join(problems) or "no parent of this site can be asked for another certificate")

    def document(self) -> Document:
        """Describe the certificate in force, and the list of revoked ones."""
        now = self.tls.now
        return {
            "file": str(now.own.file),
            "valid_from": now.own.begins_at.isoformat(),
            "valid_until": now.own.ends_at.isoformat(),
            "key": own_key(now).hex(),
            "revoked_list": now.revocations.number,
            "revoked": len(now.revocations.serials),
            "problem": self.files.problem or self.tls.note(),
        }

    async def keep(self) -> None:
        """Follow the files, and renew the certificate when it is due, until this is cancelled."""
        await asyncio.gather(self.files.watch(), self.renewal.go_on())


def _tls_files(settings: ModuleSettings) -> TlsFiles:
    return TlsFiles(
        certificate_file=settings.certificate_file,
        key_file=settings.key_file,
        trust_file=settings.trust_file,
        links=tuple((one.neighbor.system, one.trust) for one in settings.neighbors if one.trust),
        introductions=settings.introductions,
    )


def store_revocations(file: Path, found: Revocations, /, roots: bytes) -> None:
    """Write a list of revoked certificates, unless the file has a newer one. Raises OSError."""
    with alone(file.parent):
        try:
            present = read_revocations(read_regular(file), roots).number
        except (FileNotFoundError, CertificateError):
            present = -1
        if present < found.number:
            write_whole(file, found.pem)


def _renewed(directory: Path, request: RenewRequest) -> bytes:
    return SiteRoot.load(directory).renew(request.certificate_request, request.certificate)
