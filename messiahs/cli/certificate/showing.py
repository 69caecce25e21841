"""What `messiahs certificate show` says about each certificate."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.issued import IssuedCertificates
from messiahs.channel.certificates.own_certificate import READMITTANCE, RENEWAL, problem_with_files
from messiahs.channel.certificates.revocations import NO_REVOCATIONS, REVOKED_FILE, Revocations, read_revocations
from messiahs.cli.certificate.places import module_folders
from messiahs.client.connection import Document
from messiahs.config.regular_files import read_regular
from messiahs.core.model.texts import printable
from messiahs.errors import CertificateError

ELSEWHERE: Final = "issued"
_DAY_SECONDS: Final = 86_400
_NEW_ROOT: Final = (
    'the site needs a new root: docs/administrators.md, "Certificates of modules", says how it takes over'
)

_ITS_OWN: Final = "put the certificate for this key there, or `messiahs certificate request` and `sign` make one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate; `kind` is `module`, `root`, or `issued` (of a module on another host)."""

    federation: str
    name: str
    kind: str
    file: str
    issuer: str
    fingerprint: str
    serial: str
    begins_at: datetime
    ends_at: datetime
    is_revoked: bool
    problem: str = ""
    misfit: str = ""
    """Why the module cannot start with a certificate that is valid."""

    @property
    def days_left(self) -> int:
        """Whole days until it expires; negative afterwards."""
        return int((self.ends_at - datetime.now(UTC)).total_seconds() // _DAY_SECONDS)

    @property
    def state(self) -> str:
        """Return `valid`, or the first of the other words below that holds."""
        now = datetime.now(UTC)
        if self.problem:
            return "unreadable"
        if self.is_revoked:
            return "revoked"
        if now > self.ends_at:
            return "expired"
        if now < self.begins_at:
            return "not yet valid"
        if self.misfit:
            return "unusable"
        # A root is renewed by hand, a module by itself in its last third: it is late in its last sixth.
        return "soon" if now > self.ends_at - (self.ends_at - self.begins_at) / 6 else "valid"

    @property
    def warning(self) -> str:
        """Return what is wrong and what to do; empty if nothing is, or if another host has the certificate."""
        if self.kind == ELSEWHERE or self.state == "valid":
            return ""
        if self.state == "unusable":
            return f"{self.misfit}, so {self.name} cannot be started: {_ITS_OWN}"
        remedy = _NEW_ROOT if self.kind == "root" else READMITTANCE if self.is_revoked else RENEWAL
        what = self.problem or {"soon": f"expires in {self.days_left} days"}.get(self.state, f"is {self.state}")
        return f"the certificate of {self.name} ({self.file}) {what}; {remedy}"

    @property
    def document(self) -> Document:
        """Return it as JSON."""
        return {
            "federation": self.federation,
            "name": self.name,
            "kind": self.kind,
            "file": self.file,
            "issuer": self.issuer,
            "fingerprint": self.fingerprint,
            "serial": self.serial,
            "valid_from": self.begins_at.isoformat(),
            "valid_until": self.ends_at.isoformat(),
            "days_left": self.days_left,
            "state": self.state,
            "warning": self.warning,
        }


def shown_in(directory: Path) -> Iterator[Shown]:
    """Yield the certificates of STATE/FEDERATION: its roots, its modules, and what its root has signed for others."""
    roots = directory / "tls" / "root.pem"
    yield from _shown(roots, "root", directory, NO_REVOCATIONS)
    revocations = _revocations(directory)
    here = set()
    for folder in module_folders(directory):
        here.add(folder.name)
        for own in _shown(folder / "certificate.pem", "module", directory, revocations):
            yield replace(own, misfit=_misfit(folder))
    record = IssuedCertificates.read(directory / "tls")
    for each in {each.name: each for each in record.certificates}.values():
        if each.name not in here:
            yield Shown(
                federation=directory.name,
                name=each.name,
                kind=ELSEWHERE,
                file="",
                issuer=f"{directory.name} root",
                fingerprint=each.fingerprint,
                serial=each.serial,
                begins_at=each.begins_at,
                ends_at=each.ends_at,
                is_revoked=each.revoked_at is not None,
            )


def _revocations(directory: Path) -> Revocations:
    tls = directory / "tls"
    try:
        return read_revocations(read_regular(tls / REVOKED_FILE), read_regular(tls / "root.pem"))
    except FileNotFoundError:
        return NO_REVOCATIONS
    except OSError as error:
        raise CertificateError(f"{error.filename}: {error.strerror}") from error


def _shown(file: Path, kind: str, directory: Path, revocations: Revocations) -> Iterator[Shown]:
    """Yield the roots of a file, or the certificate of a module."""
    try:
        found = x509.load_pem_x509_certificates(read_regular(file))
    except (OSError, ValueError) as error:
        yield _unreadable(file, kind, directory, str(error))
        return
    for certificate in found if kind == "root" else found[:1]:
        pem = certificate.public_bytes(Encoding.PEM)
        yield Shown(
            federation=directory.name,
            name=_title_of(certificate.subject) if kind == "root" else file.parent.name,
            kind=kind,
            file=str(file),
            issuer=_title_of(certificate.issuer),
            fingerprint=certificate_fingerprint(certificates_in(pem)[0]).hex(),
            serial=f"{certificate.serial_number:x}",
            begins_at=certificate.not_valid_before_utc,
            ends_at=certificate.not_valid_after_utc,
            is_revoked=certificate.serial_number in revocations.serials,
        )


def _misfit(folder: Path) -> str:
    try:
        return problem_with_files(
            folder / "certificate.pem", folder / "key.pem", federation=folder.parent.name, name=folder.name
        )
    except OSError:
        # Only the owner of the key can compare both.
        return ""


def _unreadable(file: Path, kind: str, directory: Path, problem: str) -> Shown:
    never = datetime.fromtimestamp(0, UTC)
    name = file.parent.name
    return Shown(
        federation=directory.name,
        name=name,
        kind=kind,
        file=str(file),
        issuer="",
        fingerprint="",
        serial="",
        begins_at=never,
        ends_at=never,
        is_revoked=False,
        problem=f"cannot be read: {problem}",
    )


def _title_of(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return printable(str(found[0].value) if found else name.rfc4514_string())
