"""Which certificates `messiahs certificate revoke` means."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.issued import Issued
from messiahs.channel.certificates.renewals import name_of_signed, shown_certificate
from messiahs.channel.certificates.revocations import Revocations
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.config.regular_files import read_regular
from messiahs.errors import CertificateError, ClientError, MessiahsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """Names of modules, serial numbers, and certificates that were found in files."""

    names: frozenset[str]
    serials: frozenset[str]
    found: tuple[Issued, ...]


def meant_by(root: SiteRoot, directory: Path, /, words: tuple[str, ...]) -> Meant:
    """Return what words mean: all certificates of a module, the one with a serial number, or a file's.

    Raises a `ClientError` if one means nothing that the root has signed.
    """
    names, serials, found = set(), set(), []
    issued, now = root.issued, datetime.now(UTC)
    for word in words:
        number = word.lower().lstrip("0")
        own = directory / word / "certificate.pem"
        is_noted = any(each.ends_at > now for each in issued.of(word))
        if "/" in word or word.endswith((".pem", ".crt")):
            found.append(_shown_in(root, Path(word)))
        elif is_noted or own.exists():
            names.add(word)
            found.extend(_own_in(root, own, is_needed=not is_noted))
        elif any(each.serial == number for each in issued.certificates):
            serials.add(number)
        else:
            known = ", ".join(sorted({each.name for each in issued.certificates})) or "nobody"
            raise ClientError(
                f"the root of {root.federation} has signed no certificate of {word}; it has for {known}; one that is "
                "not noted here is revoked by its file: copy its certificate.pem to this host"
            )
    return Meant(names=frozenset(names), serials=frozenset(serials), found=tuple(found))


def revoke(root: SiteRoot, meant: Meant) -> tuple[Revocations, tuple[Issued, ...], tuple[str, ...]]:
    """Revoke; return the list, the noted certificates that were meant, and names that have other valid ones."""
    made = root.revoke(meant.serials, names=meant.names, found=meant.found)
    now, issued = datetime.now(UTC), root.issued
    serials = meant.serials | {each.serial for each in meant.found}
    revoked = tuple(
        each
        for each in issued.certificates
        if each.revoked_at is not None and each.ends_at > now and (each.name in meant.names or each.serial in serials)
    )
    return made, revoked, tuple(sorted({each.name for each in revoked if issued.valid(each.name, now)}))


def _own_in(root: SiteRoot, file: Path, *, is_needed: bool) -> tuple[Issued, ...]:
    """Return the certificate of a module on this host, the first in its file; nothing if it is of no use or missing."""
    try:
        return (_signed(root, file, next(iter(certificates_in(_read(file))), b"")),)
    except (MessiahsError, ValueError):
        if is_needed:
            raise
        return ()


def _shown_in(root: SiteRoot, file: Path) -> Issued:
    content = _read(file)
    try:
        return _signed(root, file, shown_certificate(content))
    except CertificateError as error:
        raise ClientError(f"{file}: {error}") from error


def _signed(root: SiteRoot, file: Path, certificate: bytes) -> Issued:
    try:
        return Issued.of(certificate, name_of_signed(certificate, roots=root.roots, federation=root.federation))
    except ValueError as error:
        raise ClientError(f"{file}: {error}") from error


def _read(file: Path) -> bytes:
    try:
        return read_regular(file)
    except OSError as error:
        raise ClientError(f"{file}: {error.strerror}") from error
