"""Keys and certificates: every channel uses mutual TLS, and a certificate names its module in a SAN URI.

The module cryptography is imported only where something is created, because a running daemon does not need it.
"""

import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.revocations import (
    LIST_LIMIT_BYTES,
    NO_REVOCATIONS,
    REVOKED_FILE,
    SIGNED_AGAIN,
    Revocations,
    read_revocations,
)
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import TrustedFile
from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import matches
from messiahs.errors import CertificateError, ChannelError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

ROOT_LIFETIME: Final = timedelta(days=3652)
MODULE_LIFETIME: Final = timedelta(days=825)
_CLOCK_SKEW: Final = timedelta(days=1)
FOREIGN_KEY: Final = "the key belongs to none of the certificates"
"""Why a key and the certificates of roots cannot sign, although both can be read."""
_PEM_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRoots:
    """Roots (PEM) of another site, their file, and patterns of the names for which they may vouch."""

    file: Path
    roots: bytes
    names: tuple[str, ...]

    def may_vouch_for(self, name: SystemId) -> bool:
        """Whether a pattern matches."""
        return matches(name, self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of a module's certificate, its key, and the roots that it trusts, all in PEM.

    Roots in `trust_file` vouch for every system for which no other file is recorded: `links` has those of neighbors,
    `introductions` those of systems without a link. A file vouches only for names that match one of its patterns.
    """

    certificate_file: Path
    key_file: Path
    trust_file: Path
    links: tuple[tuple[SystemId, tuple[TrustedFile, ...]], ...] = ()
    introductions: tuple[TrustedFile, ...] = ()

    @property
    def revoked_file(self) -> Path:
        """Path of the list of revoked certificates, beside the roots of the site; it need not exist."""
        return self.trust_file.with_name(REVOKED_FILE)

    @property
    def all_files(self) -> tuple[Path, ...]:
        """Paths of all files."""
        others = (*(each for _, recorded in self.links for each in recorded), *self.introductions)
        own = (self.certificate_file, self.key_file, self.trust_file, self.revoked_file)
        return (*own, *(each.file for each in others))


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsMaterial:
    """The content of `TlsFiles`."""

    own: OwnCertificate
    certificate: bytes
    key: bytes
    trust: bytes
    trust_file: Path
    links: tuple[tuple[SystemId, tuple[RecordedRoots, ...]], ...] = ()
    introductions: tuple[RecordedRoots, ...] = ()
    revocations: Revocations = NO_REVOCATIONS

    def roots_for(self, peer: SystemId) -> bytes:
        """Return the roots that may vouch for a name.

        For a neighbor with roots of its own, only these count; for other names, the roots whose patterns match; if
        there are none, the roots of this module's own site.
        """
        recorded = dict(self.links).get(peer)
        found = _joined(each.roots for each in self._recorded_for(peer))
        return self.trust if recorded is None and not found else found

    def files_for(self, peer: SystemId) -> tuple[Path, ...]:
        """Return the files recorded for a system of another site; empty for a system of this site."""
        return tuple(each.file for each in self._recorded_for(peer))

    def has_other_roots(self, peer: SystemId) -> bool:
        """Whether roots of another site vouch for a name."""
        return self.roots_for(peer) != self.trust

    @property
    def all_roots(self) -> bytes:
        """Return all roots: a handshake accepts any of them, because it does not know the peer's name yet."""
        return _joined((self.trust, *(each.roots for each in self._of_other_sites)))

    def _recorded_for(self, peer: SystemId) -> tuple[RecordedRoots, ...]:
        candidates = dict(self.links).get(peer, self._of_other_sites)
        return tuple(each for each in candidates if each.may_vouch_for(peer))

    @property
    def _of_other_sites(self) -> tuple[RecordedRoots, ...]:
        return (*(each for _, recorded in self.links for each in recorded), *self.introductions)

    def context(self, protocol: int, *, roots: bytes) -> ssl.SSLContext:
        """Return a context for mutual TLS whose peer must be signed by one of these roots."""
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=roots.decode("ascii"))
        # The library reads keys from files only; this one exists in memory.
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(self.key + b"\n" + self.certificate)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return context


def _joined(roots: Iterable[bytes]) -> bytes:
    return b"\n".join(dict.fromkeys(roots))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAndCertificate:
    """A private key and the certificate of its public half, both PEM."""

    key: bytes
    certificate: bytes


def load(files: TlsFiles) -> TlsMaterial:
    """Read the files for TLS; a `ChannelError` names a file that cannot be read."""
    found = load_certificates(files)
    return replace(found, revocations=load_revocations(files, found.trust))


def load_revocations(files: TlsFiles, roots: bytes) -> Revocations:
    """Read the list of revoked certificates, if there is one; raises a `ChannelError` as `load` does."""
    file = files.revoked_file
    try:
        return read_revocations(read_regular(file, limit_bytes=LIST_LIMIT_BYTES), roots)
    except FileNotFoundError:
        return NO_REVOCATIONS
    except OSError as error:
        raise ChannelError(f"{error.filename}: {error.strerror}") from error
    except CertificateError as error:
        raise ChannelError(f"{file}: {error}; {SIGNED_AGAIN}") from error


def load_certificates(files: TlsFiles) -> TlsMaterial:
    """Read all files for TLS but the list of revoked certificates; raises a `ChannelError` as `load` does."""
    try:
        certificate = _certificates(files.certificate_file)
        trust = _certificates(files.trust_file)
        return TlsMaterial(
            own=OwnCertificate.read(certificate, files.certificate_file),
            certificate=certificate,
            key=read_regular(files.key_file),
            trust=trust,
            trust_file=files.trust_file,
            links=tuple((peer, _recorded(recorded)) for peer, recorded in files.links),
            introductions=_recorded(files.introductions),
        )
    except OSError as error:
        raise ChannelError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise ChannelError(f"{files.certificate_file}: {error}") from error


def _recorded(files: Iterable[TrustedFile]) -> tuple[RecordedRoots, ...]:
    return tuple(RecordedRoots(file=each.file, roots=_certificates(each.file), names=each.names) for each in files)


def _certificates(file: Path) -> bytes:
    content = read_regular(file)
    if _PEM_CERTIFICATE not in content:
        raise ChannelError(f"{file}: it contains no certificate in PEM")
    try:
        certificates_in(content)
    except ValueError as error:
        raise ChannelError(f"{file}: {error}") from error
    return content


def write(material: KeyAndCertificate, *, certificate_file: Path, key_file: Path) -> None:
    """Write a certificate, and a key that only its owner can read."""
    for path, content, mode in ((key_file, material.key, 0o600), (certificate_file, material.certificate, 0o644)):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, mode=mode)


def make_root(federation: str) -> KeyAndCertificate:
    """Make a root that can sign modules, but no further authorities."""
    return make_authority(f"{federation} root")


def make_authority(common_name: str) -> KeyAndCertificate:
    """Make an authority that can sign certificates, but no further authorities."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    key = new_key()
    name = subject_of(common_name)
    builder = (
        _builder(subject=name, issuer=name, key=key.public_key(), lifetime=ROOT_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return KeyAndCertificate(key=private_pem(key), certificate=_signed(builder, by=key))


def issue(root: KeyAndCertificate, *, federation: str, name: str, key: bytes | None = None) -> KeyAndCertificate:
    """Make a certificate that names a module in its federation, for its private key (PEM; None: make one).

    A `ValueError` if the root or the key cannot be read.
    """
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - see the module's docstring
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    own_key = new_key() if key is None else load_pem_private_key(key, password=None)
    assert isinstance(own_key, ec.EllipticCurvePrivateKey)
    certificate = sign_module(root, federation=federation, name=name, public_key=own_key.public_key())
    return KeyAndCertificate(key=private_pem(own_key), certificate=certificate)


def sign_module(
    root: KeyAndCertificate,
    *,
    federation: str,
    name: str,
    public_key: "ec.EllipticCurvePublicKey | rsa.RSAPublicKey",
    lifetime: timedelta = MODULE_LIFETIME,
) -> bytes:
    """Return a certificate (PEM) that names a module, for its public key; a `ValueError` if the root cannot be read."""
    names = names_of(federation, name)
    return sign_names(root, subject=name, names=names, public_key=public_key, lifetime=lifetime, is_module=True)


def sign_names(
    root: KeyAndCertificate,
    *,
    subject: str,
    names: "list[x509.GeneralName]",
    public_key: "ec.EllipticCurvePublicKey | rsa.RSAPublicKey",
    lifetime: timedelta = MODULE_LIFETIME,
    is_module: bool = False,
) -> bytes:
    """Return a certificate (PEM) with names, for a public key: of a client, or of a module, which serves as well.

    A `ValueError` if the root cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415 - as above

    root_key, issuer = signer_in(root)
    ends = [ExtendedKeyUsageOID.SERVER_AUTH] * is_module + [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(subject=subject_of(subject), issuer=issuer, key=public_key, lifetime=lifetime)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(ends), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
    )
    return _signed(builder, by=root_key)


def signer_in(root: KeyAndCertificate) -> "tuple[ec.EllipticCurvePrivateKey, x509.Name]":
    """Return the key of a root and the name of its certificate; a `ValueError` if they cannot be read."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    with malformed_as_value_error():
        key = load_pem_private_key(root.key, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        # A root and its successor may lie in one file.
        signers = x509.load_pem_x509_certificates(root.certificate)
        issuer = next((each.subject for each in signers if each.public_key() == key.public_key()), None)
    if issuer is None:
        raise ValueError(FOREIGN_KEY)
    return key, issuer


def names_of(federation: str, name: str) -> "list[x509.GeneralName]":
    """Return the names in the certificate of a module."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    return [x509.UniformResourceIdentifier(f"messiahs://{federation}/{name}"), x509.DNSName(name)]


def private_pem(key: "ec.EllipticCurvePrivateKey") -> bytes:
    """Return a private key in PEM, without a password."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - see the module's docstring

    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def new_key() -> "ec.EllipticCurvePrivateKey":
    """Make a private key."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - see the module's docstring

    return ec.generate_private_key(ec.SECP256R1())


def subject_of(text: str) -> "x509.Name":
    """Return a subject with this common name."""
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - as above

    # A common name has at most 64 characters; only people read it.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _builder(
    *,
    subject: "x509.Name",
    issuer: "x509.Name",
    key: "ec.EllipticCurvePublicKey | rsa.RSAPublicKey",
    lifetime: timedelta,
) -> "x509.CertificateBuilder":
    from cryptography import x509  # noqa: PLC0415 - see the module's docstring

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
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


def _signed(builder: "x509.CertificateBuilder", *, by: "ec.EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - see the module's docstring

    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
