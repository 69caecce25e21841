"""Files of certificates are read again when they change, and replace what is in force only if they can be used.

An administrator or a program may replace them one after the other: a file that is half written, or does not fit the
others, leaves the old one in force until the next change.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.own_certificate import problem_with_files
from messiahs.channel.certificates.revocations import NO_REVOCATIONS
from messiahs.channel.certificates.tls import TlsFiles, TlsMaterial, load_certificates, load_revocations
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.channel.periodic_jobs import repeat
from messiahs.errors import ChannelError

PERIOD_SECONDS: Final = 2.0
_LOG = logging.getLogger(__name__)
_Marks = tuple[tuple[int, int, int] | None, ...]


class CertificateFiles:
    """The files of one module, and what of them is in force (mutable). Belongs to the event loop."""

    def __init__(
        self,
        files: TlsFiles,
        tls: TlsInForce,
        *,
        federation: str,
        name: str,
        on_changed: Callable[[TlsMaterial], None] = lambda _: None,
    ) -> None:
        self._files, self._tls, self._federation, self._name = files, tls, federation, name
        self._on_changed = on_changed
        self._seen: _Marks = ()
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why files that were changed are not in force; empty if they are."""
        return self._problem

    async def watch(self) -> None:
        """Read the files again whenever they change, until this is cancelled."""
        await repeat(self.check, period_seconds=PERIOD_SECONDS, failure="the certificate files cannot be watched")

    async def check(self) -> None:
        """Read the files if they have changed; what cannot be used is logged once."""
        marks = _marks(self._files.all_files)
        if marks == self._seen:
            return
        before = self._tls.now
        found, problem = await asyncio.to_thread(self._read, before)
        if self._tls.now is not before:
            # Somebody else has read them in the meantime; the next check compares again.
            return
        # Files with a problem are read again even if they do not change: the problem may be that of the reader.
        self._seen = () if problem else marks
        if problem and problem != self._problem:
            _LOG.warning("%s; what was in force before stays in force", problem)
        self._problem = problem
        if found != before:
            self._use(found, before)

    def _use(self, found: TlsMaterial, before: TlsMaterial) -> None:
        if found.certificate != before.certificate:
            _LOG.info("the certificate of this module was replaced; it is valid until %s", found.own.ends_at)
        if found.trust != before.trust or found.all_roots != before.all_roots:
            _LOG.info("the trusted roots were replaced")
        if not found.revocations.number and before.revocations.number:
            _LOG.warning(
                "list %d of revoked certificates counts no more: its root was removed", before.revocations.number
            )
        elif found.revocations.number != before.revocations.number:
            count = len(found.revocations.serials)
            _LOG.warning("%d certificates are revoked, by list %d", count, found.revocations.number)
        self._tls.use(found)
        self._on_changed(found)
        note = self._tls.note()
        if note:
            _LOG.warning("%s", note)

    def _read(self, now: TlsMaterial) -> tuple[TlsMaterial, str]:
        """Return what the files say, with what is in force for those that are of no use, and what is wrong with them.

        Each is read by itself: a root that was removed is trusted no more whatever the list is like, and what was
        revoked is so whatever the other files are like.
        """
        problems = []
        try:
            found = load_certificates(self._files)
        except ChannelError as error:
            problems.append(str(error))
            found = now
        roots = map(certificate_fingerprint, certificates_in(found.trust))
        # Neighbors that have a list of a root that is left send it: their links are renewed when a root is removed.
        kept = now.revocations if now.revocations.signer in roots else NO_REVOCATIONS
        try:
            read = load_revocations(self._files, found.trust)
            if read.number < kept.number:
                text = f"{self._files.revoked_file} is older than the list of revoked certificates that is in force"
                problems.append(f"{text}, number {kept.number}: put the newer one back")
        except ChannelError as error:
            problems.append(str(error))
            read = kept
        found = replace(found, revocations=max(kept, read, key=lambda each: each.number))
        if (found.certificate, found.key) != (now.certificate, now.key):
            problem = self._own_problem(found)
            if problem:
                problems.append(problem)
                found = replace(found, own=now.own, certificate=now.certificate, key=now.key)
        return found, "; ".join(dict.fromkeys(problems))

    def _own_problem(self, found: TlsMaterial) -> str:
        files = self._files
        problem = problem_with_files(
            files.certificate_file, files.key_file, federation=self._federation, name=self._name
        )
        if not problem and not is_signed(certificates_in(found.certificate), roots=found.trust):
            problem = f"no root in {files.trust_file} has signed the certificate {files.certificate_file}"
        return problem


def _marks(files: tuple[Path, ...]) -> _Marks:
    return tuple(map(_mark, files))


def _mark(file: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written or replaced; None without the file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
