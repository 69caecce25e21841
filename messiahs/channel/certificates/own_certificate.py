"""The certificate of this module: until when it is valid, and whether it can serve this module at all.

The validity is parsed without the module cryptography, which a running daemon does not need; all else is checked before
the daemon starts.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from messiahs.channel.certificates.fingerprints import (
    certificates_in,
    is_authority,
    validity_of,
)
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.core.model.texts import printable

if TYPE_CHECKING:
    from cryptography import x509

NOTED_BEFORE: Final = timedelta(days=30)
RENEWAL: Final = (
    "`messiahs certificate renew` renews it where tls/root.key lies, or through a parent; otherwise "
    "`messiahs certificate request` and `sign` make another one (docs/administrators.md)"
)
READMITTANCE: Final = (
    "to readmit it, `messiahs certificate request --new-key` there and `messiahs certificate sign --new-key` where "
    "tls/root.key lies"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCertificate:
    """A file with the certificate of this module, and the period in which it is valid."""

    file: Path
    begins_at: datetime
    ends_at: datetime

    @classmethod
    def read(cls, pem: bytes, file: Path) -> Self:
        """Return the first certificate in the content of a file; a `ValueError` if there is none."""
        found = certificates_in(pem)
        if not found:
            raise ValueError("it contains no certificate in PEM")
        begins_at, ends_at = validity_of(found[0])
        return cls(file=file, begins_at=begins_at, ends_at=ends_at)

    def is_due(self, now: datetime | None = None) -> bool:
        """Whether the last third of the lifetime has begun."""
        return (now or datetime.now(UTC)) >= self.ends_at - (self.ends_at - self.begins_at) / 3

    def problem(self, now: datetime | None = None) -> str:
        """Return why no other module accepts the certificate at a time, by default now; "" if it is valid."""
        now = now or datetime.now(UTC)
        if now > self.ends_at:
            return f"the certificate of this module, {self.file}, expired at {_date(self.ends_at)}"
        if now < self.begins_at:
            text = f"the certificate of this module, {self.file}, is valid only from {_date(self.begins_at)} on"
            return f"{text}, and it is {_date(now)} here: is the clock right?"
        return ""

    def note(self, now: datetime | None = None) -> str:
        """Return the problem, or in the last 30 days when the certificate expires, with the remedy; otherwise ""."""
        now = now or datetime.now(UTC)
        problem = self.problem(now)
        if not problem and now >= self.ends_at - NOTED_BEFORE:
            problem = f"the certificate of this module, {self.file}, expires at {_date(self.ends_at)}"
        return f"{problem}; {RENEWAL}" if problem else ""


class Named(NamedTuple):
    """The content of a file, and how texts call it."""

    content: bytes
    place: str


def problem_with_files(certificate_file: Path, key_file: Path, *, federation: str, name: str) -> str:
    """Return why a module cannot use its certificate and key; "" if it can.

    They exist and are valid now, the certificate is for this key and not that of an authority, and it names the module
    as a URI and a DNS name.
    """
    for file in (certificate_file, key_file):
        if not file.exists():
            return f"{file} is missing"
    found, key = (Named(file.read_bytes(), str(file)) for file in (certificate_file, key_file))
    return problem_with(found, key, federation=federation, name=name)


def problem_with(certificate: Named, key: Named, /, *, federation: str, name: str) -> str:
    """Return why a module cannot use a certificate and a key (PEM), as `problem_with_files` does."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    content, place = certificate
    try:
        with malformed_as_value_error():
            read = x509.load_pem_x509_certificate(content)
        problem = OwnCertificate.read(content, Path(place)).problem()
    except ValueError as error:
        return f"{place} contains no certificate: {error}"
    try:
        private = load_pem_private_key(key.content, password=None)
    except (ValueError, TypeError) as error:
        return f"{key.place} contains no private key without a password: {error}"
    if private.public_key() != read.public_key():
        return f"the certificate {place} is not for the key in {key.place}"
    if is_authority(certificates_in(content)[0]):
        return f"the certificate {place} is that of an authority, which no other module accepts"
    found, wanted = _names_in(read), (f"messiahs://{federation}/{name}", name)
    if not set(wanted) <= set(found) or sum(each.startswith("messiahs://") for each in found) != 1:
        named = printable(", ".join(found)) or "nobody"
        return f"the certificate {place} names {named}, not URI:{wanted[0]} and DNS:{name}"
    return problem


def _names_in(certificate: "x509.Certificate") -> tuple[str, ...]:
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    try:
        with malformed_as_value_error():
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except ValueError:
        return ()
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return (*uris, *names.get_values_for_type(x509.DNSName))


def _date(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC"
