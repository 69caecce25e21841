"""What `messiahs certificate show` says about each certificate."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from messiahs.channel.certificates.issued import ISSUED_FILE, Issued, IssuedCertificates
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.channel.certificates.own_certificate import READMITTANCE, RENEWAL, problem_with_files
from messiahs.channel.certificates.revocations import (
    NO_REVOCATIONS,
    REVOKED_FILE,
    SIGNED_AGAIN,
    Revocations,
    read_revocations,
)
from messiahs.cli.certificate.places import is_open, module_folders
from messiahs.cli.certificate.signers import fingerprint_of, signing_root
from messiahs.client.connection import Document
from messiahs.config.regular_files import read_regular
from messiahs.core.model.texts import printable
from messiahs.errors import CertificateError, StoreError

ELSEWHERE: Final = "issued"
LIST: Final = "list"
_SHORT_DIGITS: Final = 8
"""Digits of a fingerprint that tell the few roots of a site apart."""
_DAY_SECONDS: Final = 86_400
_NEW_ROOT: Final = (
    'the site needs a new root: docs/administrators.md, "Certificates of modules", says how it takes over'
)

_ITS_OWN: Final = "put the certificate for this key there, or `messiahs certificate request` and `sign` make one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate; `kind` is `module`, `root`, `issued` (of a module on another host), or `list`.

    The list of revoked certificates is shown only if it is of no use.
    """

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
    issuer_fingerprint: str = ""
    """Fingerprint of the root in tls/root.pem that has signed it; empty if none has, or it is not known."""
    has_other_root: bool = False
    """Whether no root in tls/root.pem has signed it."""
    has_signed_list: bool = False
    """Whether this root has signed the list of revoked certificates."""
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
        if self.has_other_root:
            return "signed by no root here"
        if self.misfit:
            return "unusable"
        # A root is renewed by hand, a module by itself in its last third: it is late in its last sixth.
        return "soon" if now > self.ends_at - (self.ends_at - self.begins_at) / 6 else "valid"

    @property
    def signed_by(self) -> str:
        """Return the issuer and the first digits of its fingerprint, which two roots of one name do not share."""
        return f"{self.issuer} {self.issuer_fingerprint[:_SHORT_DIGITS]}".strip() or "-"

    @property
    def needs_root(self) -> bool:
        """Whether it is of no more use without the root that signed it: it is no root, and not expired or revoked."""
        return self.kind != "root" and self.state not in {"unreadable", "revoked", "expired"}

    @property
    def warning(self) -> str:
        """Return what is wrong and what to do; empty if nothing is, or if another host has the certificate."""
        if self.kind == ELSEWHERE or self.state == "valid":
            return ""
        if self.kind == LIST:
            return f"{self.file} {self.problem}; {SIGNED_AGAIN}"
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
            "issuer_fingerprint": self.issuer_fingerprint,
            "fingerprint": self.fingerprint,
            "serial": self.serial,
            "valid_from": self.begins_at.isoformat(),
            "valid_until": self.ends_at.isoformat(),
            "days_left": self.days_left,
            "state": self.state,
            "warning": self.warning,
        }


def shown_in(directory: Path) -> Iterator[Shown]:
    """Yield the certificates of STATE/FEDERATION: its roots, its modules, and what its root has signed for others.

    What is closed to this account is left out (`places.closed_in`).
    """
    tls = directory / "tls"
    root_file = tls / "root.pem"
    # Without them, nobody can say which root has signed the others.
    roots: list[x509.Certificate] = []
    try:
        roots = _read(root_file)
    except PermissionError:
        pass
    except (OSError, ValueError) as error:
        yield _unreadable(root_file, "root", directory, str(error))
    revocations = NO_REVOCATIONS
    try:
        revocations = _revocations(tls) if roots else NO_REVOCATIONS
    except PermissionError:
        pass
    except (OSError, CertificateError) as error:
        yield _unreadable(tls / REVOKED_FILE, LIST, directory, str(error))
    for each in roots:
        root = _shown([each], root_file, directory, kind="root", name=_title_of(each.subject), roots=roots)
        yield replace(root, has_signed_list=revocations.signer.hex() == root.fingerprint)
    here = set()
    for folder in module_folders(directory):
        here.add(folder.name)
        file = folder / "certificate.pem"
        try:
            chain = _read(file)
        except PermissionError:
            continue
        except (OSError, ValueError) as error:
            yield _unreadable(file, "module", directory, str(error))
            continue
        own = _shown(chain, file, directory, kind="module", name=folder.name, roots=roots)
        is_revoked = chain[0].serial_number in revocations.serials
        yield replace(own, is_revoked=is_revoked, misfit=_misfit(folder))
    record = IssuedCertificates.read(tls) if is_open(tls / ISSUED_FILE) else IssuedCertificates()
    for issued in {each.name: each for each in record.certificates}.values():
        if issued.name not in here:
            yield _shown_elsewhere(issued, directory, roots)


def roots_in_use(found: list[Shown]) -> Iterator[str]:
    """Yield for each root of a federation that has several which of its certificates still need it."""
    roots = [each for each in found if each.kind == "root" and each.fingerprint]
    for root in roots if len(roots) > 1 else ():
        signed = [each.name for each in found if each.needs_root and each.issuer_fingerprint == root.fingerprint]
        signed += ["the list of revoked ones"] * root.has_signed_list
        which = f"has signed {', '.join(signed)}" if signed else "has signed none that is valid"
        yield f"of these certificates the root {root.fingerprint[:_SHORT_DIGITS]} of {root.federation} {which}"


def _revocations(tls: Path) -> Revocations:
    try:
        return read_revocations(read_regular(tls / REVOKED_FILE), read_regular(tls / "root.pem"))
    except FileNotFoundError:
        return NO_REVOCATIONS


def _read(file: Path) -> list[x509.Certificate]:
    return _certificates_in(read_regular(file))


def _certificates_in(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a PEM text; a `ValueError` if there is none, or one is malformed."""
    with malformed_as_value_error():
        found = x509.load_pem_x509_certificates(pem)
        for each in found:
            # Names are parsed when they are first read.
            _title_of(each.subject), _title_of(each.issuer)
    return found


def _shown(
    chain: list[x509.Certificate], file: Path, directory: Path, *, kind: str, name: str, roots: list[x509.Certificate]
) -> Shown:
    """Return the first certificate of a chain that leads to a root."""
    certificate, signer = chain[0], signing_root(chain, roots)
    return Shown(
        federation=directory.name,
        name=name,
        kind=kind,
        file=str(file),
        issuer=_title_of(certificate.issuer),
        issuer_fingerprint="" if signer is None else fingerprint_of(signer),
        has_other_root=kind != "root" and bool(roots) and signer is None,
        fingerprint=fingerprint_of(certificate),
        serial=f"{certificate.serial_number:x}",
        begins_at=certificate.not_valid_before_utc,
        ends_at=certificate.not_valid_after_utc,
        is_revoked=False,
    )


def _shown_elsewhere(issued: Issued, directory: Path, roots: list[x509.Certificate]) -> Shown:
    """Return what the root's record says; only certificates that are in it whole show who has signed them.

    Raises a `StoreError` if such a one is malformed.
    """
    try:
        chain = _certificates_in(issued.pem.encode()) if issued.pem else []
    except ValueError as error:
        file = directory / "tls" / ISSUED_FILE
        text = f"{file} cannot be read: the certificate of {issued.name} in it is of no use ({printable(str(error))})"
        raise StoreError(f"{text}; restore it from a backup") from error
    signer = signing_root(chain, roots)
    return Shown(
        federation=directory.name,
        name=issued.name,
        kind=ELSEWHERE,
        file="",
        issuer=_title_of(chain[0].issuer) if chain else f"{directory.name} root",
        issuer_fingerprint="" if signer is None else fingerprint_of(signer),
        has_other_root=bool(chain and roots) and signer is None,
        fingerprint=issued.fingerprint,
        serial=issued.serial,
        begins_at=issued.begins_at,
        ends_at=issued.ends_at,
        is_revoked=issued.revoked_at is not None,
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
    name = file.parent.name if kind == "module" else file.name
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
