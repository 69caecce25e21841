"""Keys and certificates: every channel uses mutual TLS, and a certificate names its module in a SAN URI.

The module cryptography is imported only where something is created, because a running daemon does not need it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

ROOT_LIFETIME: Final = timedelta(days=3652)
MODULE_LIFETIME: Final = timedelta(days=825)
_CLOCK_SKEW: Final = timedelta(hours=1)
_PEM_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_URI = re.compile(r"messiahs://([a-z0-9.-]{1,255})/([a-z0-9.-]{1,255})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of a module's certificate, its key, and the roots that it trusts, all in PEM.

    Roots in `trust_file` vouch for every system except neighbors that have their own file in `neighbor_trust_files`.
    """

    certificate_file: Path
    key_file: Path
    trust_file: Path
    neighbor_trust_files: tuple[tuple[SystemId, Path], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsMaterial:
    """The content of `TlsFiles`."""

    certificate: bytes
    key: bytes
    trust: bytes
    neighbor_trust: tuple[tuple[SystemId, bytes], ...] = ()

    def roots_for(self, peer: SystemId) -> bytes:
        """Return the roots that vouch for this name."""
        return dict(self.neighbor_trust).get(peer, self.trust)

    @property
    def all_roots(self) -> bytes:
        """Return all roots: a handshake accepts any of them, because it does not know the peer's name yet."""
        return b"\n".join(dict.fromkeys((self.trust, *dict(self.neighbor_trust).values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAndCertificate:
    """A private key and the certificate of its public half, both PEM."""

    key: bytes
    certificate: bytes


def load(files: TlsFiles) -> TlsMaterial:
    """Read the files for TLS; a `ChannelError` names a file that cannot be read."""
    try:
        return TlsMaterial(
            certificate=_certificates(files.certificate_file),
            key=read_regular(files.key_file),
            trust=_certificates(files.trust_file),
            neighbor_trust=tuple((peer, _certificates(file)) for peer, file in files.neighbor_trust_files),
        )
    except OSError as error:
        raise ChannelError(f"{error.filename}: {error.strerror}") from error


def _certificates(file: Path) -> bytes:
    content = read_regular(file)
    if _PEM_CERTIFICATE not in content:
        raise ChannelError(f"{file}: it contains no certificate in PEM")
    return content


def write(material: KeyAndCertificate, *, certificate_file: Path, key_file: Path) -> None:
    """Write a certificate, and a key that only its owner can read."""
    for path, content, mode in ((key_file, material.key, 0o600), (certificate_file, material.certificate, 0o644)):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, mode=mode)


def peer_name(auth_context: Mapping[str, Iterable[bytes]], federation: str) -> SystemId | None:
    """Return the system that the peer's certificate names in this federation; None if it names none or several."""
    names = set()
    # gRPC lists URIs separately from other alternative names, so that a DNS name cannot impersonate one.
    for uri in auth_context.get("peer_uri", ()):
        match = _URI.fullmatch(uri.decode(errors="replace"))
        if match is not None and match[1] == federation:
            names.add(match[2])
    return SystemId(names.pop()) if len(names) == 1 else None


def make_root(federation: str) -> KeyAndCertificate:
    """Make a root that can sign modules, but no further authorities."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    key = _new_key()
    name = _name(f"{federation} root")
    builder = (
        _builder(subject=name, issuer=name, key=key, lifetime=ROOT_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key=key, by=key)


def issue(root: KeyAndCertificate, *, federation: str, name: str, key: bytes | None = None) -> KeyAndCertificate:
    """Make a certificate that names a module in its federation, for its private key (PEM; None: make one).

    A `ValueError` if the root or the key cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415 - as above

    root_key = load_pem_private_key(root.key, password=None)
    own_key = _new_key() if key is None else load_pem_private_key(key, password=None)
    assert isinstance(root_key, ec.EllipticCurvePrivateKey)
    assert isinstance(own_key, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(root.certificate).subject
    names = [x509.UniformResourceIdentifier(f"messiahs://{federation}/{name}"), x509.DNSName(name)]
    both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(subject=_name(name), issuer=issuer, key=own_key, lifetime=MODULE_LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
    )
    return _signed(builder, key=own_key, by=root_key)


def _new_key() -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - see the module's docstring

    return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> "x509.Name":
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - as above

    # A common name has at most 64 characters; only people read it.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _builder(
    *, subject: "x509.Name", issuer: "x509.Name", key: "ec.EllipticCurvePrivateKey", lifetime: timedelta
) -> "x509.CertificateBuilder":
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> "x509.KeyUsage":
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: "x509.CertificateBuilder", *, key: "ec.EllipticCurvePrivateKey", by: "ec.EllipticCurvePrivateKey"
) -> KeyAndCertificate:
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - see the module's docstring

    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyAndCertificate(key=private, certificate=builder.sign(by, hashes.SHA256()).public_bytes(pem))
