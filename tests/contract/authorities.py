"""Certificates of any content, signed by authorities of the tests."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from messiahs.channel.certificates.tls import KeyAndCertificate

DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a certificate is to say; `days` are the first and last of its validity, counted from today."""

    uris: tuple[str, ...]
    dns_names: tuple[str, ...]
    days: tuple[int, int] = (-1, 1)
    is_authority: bool = False


def naming(name: str, *, federation: str = "campus", days: tuple[int, int] = (-1, 1)) -> Wanted:
    """Return what the certificate of a module says."""
    return Wanted(uris=(f"messiahs://{federation}/{name}",), dns_names=(name,), days=days)


class Authority:
    """A root, or an authority below one, that signs whatever it is asked for."""

    def __init__(self, name: str, above: "Authority | None" = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = above or self
        builder = _builder(self._subject, signer._subject, self._key, (-2, 2))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=True, is_module=False), critical=True)
        builder = _with_key_ids(builder, self._key, signer._key)
        self._chain = b"" if above is None else self._pem(builder.sign(signer._key, hashes.SHA256()))
        self.root: bytes = self._pem(builder.sign(self._key, hashes.SHA256())) if above is None else above.root

    def sign(self, wanted: Wanted, *, key: bytes = b"") -> KeyAndCertificate:
        """Return a certificate with the chain to its root; with `key` (PEM), for that key."""
        own = load_pem_private_key(key, password=None) if key else ec.generate_private_key(ec.SECP256R1())
        assert isinstance(own, ec.EllipticCurvePrivateKey)
        named = [*map(x509.UniformResourceIdentifier, wanted.uris), *map(x509.DNSName, wanted.dns_names)]
        builder = _builder(x509.Name([]), self._subject, own, wanted.days)
        builder = builder.add_extension(x509.SubjectAlternativeName(named), critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=wanted.is_authority, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=wanted.is_authority, is_module=True), critical=True)
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        signed = _with_key_ids(builder, own, self._key).sign(self._key, hashes.SHA256())
        private = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return KeyAndCertificate(key=private, certificate=self._pem(signed) + self._chain)

    @staticmethod
    def _pem(certificate: x509.Certificate) -> bytes:
        return certificate.public_bytes(Encoding.PEM)


def all_roots(authorities: Iterable[Authority]) -> bytes:
    """Return the roots of several authorities, as one file holds them."""
    return b"".join(authority.root for authority in authorities)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: tuple[int, int]
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer,
        subject,
        key.public_key(),
        x509.random_serial_number(),
        now + days[0] * DAY,
        now + days[1] * DAY,
    )


def _with_key_ids(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return builder.add_extension(own, critical=False).add_extension(above, critical=False)


def _usage(*, is_authority: bool, is_module: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=is_module,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
