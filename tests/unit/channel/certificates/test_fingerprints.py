"""Fingerprints of certificates and of the public keys in them."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from messiahs.channel.certificates.fingerprints import (
    certificate_fingerprint,
    certificates_in,
    is_authority,
    key_fingerprint,
)
from messiahs.channel.certificates.tls import make_root

KEYS: dict[str, CertificateIssuerPrivateKeyTypes] = {
    "elliptic": ec.generate_private_key(ec.SECP384R1()),
    "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}


def certificate_of(key: CertificateIssuerPrivateKeyTypes, *, name: str = "cs") -> bytes:
    now = datetime.now(UTC)
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)] if name else [])
    builder = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
    )
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(Encoding.DER)


@pytest.mark.parametrize("kind", KEYS)
def test_the_fingerprint_of_a_key_is_that_of_its_public_key_info_whatever_the_certificate(kind: str) -> None:
    key = KEYS[kind]
    expected = hashlib.sha256(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    one, other, nameless = (certificate_of(key, name=name) for name in ("cs", "x" * 64, ""))
    assert key_fingerprint(one) == key_fingerprint(other) == key_fingerprint(nameless) == expected[:16]
    assert certificate_fingerprint(one) == hashlib.sha256(one).digest()[:16]
    assert certificate_fingerprint(one) != certificate_fingerprint(other)


def test_whatever_is_cut_off_a_certificate_is_refused_or_changes_nothing() -> None:
    (certificate,) = certificates_in(make_root("campus").certificate)
    expected = key_fingerprint(certificate)
    for size in range(len(certificate)):
        with pytest.raises(ValueError, match="no certificate in DER"):
            key_fingerprint(certificate[:size])
    assert key_fingerprint(certificate + b"more") == expected


@pytest.mark.parametrize("is_critical", [True, False])
def test_an_authority_is_one_that_says_so(*, is_critical: bool) -> None:
    def says(*constraints: x509.BasicConstraints) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(x509.Name([]), x509.Name([]), key.public_key(), 1, now, now)
        for each in (x509.SubjectAlternativeName([x509.DNSName("cs")]), *constraints):
            builder = builder.add_extension(each, critical=is_critical)
        return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)

    assert is_authority(says(x509.BasicConstraints(ca=True, path_length=None)))
    assert is_authority(says(x509.BasicConstraints(ca=True, path_length=3)))
    assert not is_authority(says(x509.BasicConstraints(ca=False, path_length=None)))
    assert not is_authority(says())
    assert not is_authority(certificate_of(KEYS["elliptic"]))
    (root,) = certificates_in(make_root("campus").certificate)
    assert is_authority(root)
    for size in range(len(root)):
        with pytest.raises(ValueError, match="no certificate in DER"):
            is_authority(root[:size])


def test_all_certificates_of_a_text_are_found_in_their_order() -> None:
    roots = [make_root("campus").certificate for _ in range(2)]
    found = certificates_in(b"a note\n" + b"\n".join(roots) + b"-----BEGIN CERTIFICATE-----")
    assert found == tuple(certificate for root in roots for certificate in certificates_in(root))
    assert certificates_in(b"") == ()
