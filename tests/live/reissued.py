"""Certificates with another validity, as an administrator may sign them, or a host whose clock is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key


def reissued(
    certificate: bytes, root_key: bytes, *, begins_at: datetime | None = None, ends_at: datetime | None = None
) -> bytes:
    """Return a certificate for the same names and key that is valid between these instants; by default the old ones."""
    old = x509.load_pem_x509_certificate(certificate)
    key = load_pem_private_key(root_key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder(
        old.issuer,
        old.subject,
        old.public_key(),
        x509.random_serial_number(),
        begins_at or old.not_valid_before_utc,
        ends_at or old.not_valid_after_utc,
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@contextmanager
def hidden(root_key: Path) -> Iterator[bytes]:
    """Hide a root's key, so that a module starts with the certificate that it finds; yield the key."""
    place = root_key.with_suffix(".hidden")
    content = root_key.read_bytes()
    root_key.rename(place)
    try:
        yield content
    finally:
        place.rename(root_key)
