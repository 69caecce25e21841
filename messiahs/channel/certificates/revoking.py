"""The making of lists of revoked certificates, where the key of the root lies."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from messiahs.channel.certificates.tls import ROOT_LIFETIME, KeyAndCertificate, signer_in

if TYPE_CHECKING:
    from cryptography import x509


def make_revocations(root: KeyAndCertificate, serials: Mapping[int, datetime], *, above: int) -> bytes:
    """Return a list (PEM) of serial numbers with the times of their revocation, whose number is above another one.

    The number is at least the time in seconds, so that it also grows if the last list was lost. A `ValueError` if the
    root cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - an expensive import
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - as above

    key, issuer = signer_in(root)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer)
        .last_update(now - timedelta(days=1))
        .next_update(now + ROOT_LIFETIME)
        .add_extension(x509.CRLNumber(max(above + 1, int(now.timestamp()))), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    for entry in _entries(serials):
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _entries(serials: Mapping[int, datetime]) -> "Iterable[x509.RevokedCertificate]":
    from cryptography import x509  # noqa: PLC0415 - an expensive import

    for serial, at in serials.items():
        yield x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(at).build()
