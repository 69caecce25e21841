"""Certificate requests: what is signed for them, and which are refused."""

from dataclasses import dataclass

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtensionOID

from messiahs.channel.certificates.fingerprints import certificates_in, is_authority, key_fingerprint
from messiahs.channel.certificates.requests import make_request, requested_key, requested_name, sign_request
from messiahs.channel.certificates.tls import make_root
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.core.model.ids import SystemId
from messiahs.wire.limits import CERTIFICATE_REQUEST_LIMIT_BYTES

FEDERATION, NAME = "campus", "xinu"
URI, DNS = x509.UniformResourceIdentifier("messiahs://campus/xinu"), x509.DNSName("xinu")
X400_ADDRESS = bytes.fromhex("3004a3023000")
"""A list of names in DER with one name of a kind that cryptography does not read."""
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


def _request(*names: x509.GeneralName, key: Key | None = None, is_ca: bool = False) -> bytes:
    own = key or ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    if is_ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    algorithm = None if isinstance(own, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(own, algorithm).public_bytes(Encoding.PEM)


def _request_with(names: bytes) -> bytes:
    """Return a request whose list of names is any DER."""
    extension = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names)
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    made = builder.add_extension(extension, critical=False)
    return made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


def _forged() -> bytes:
    """Return a request whose signature is that of another one."""
    mine, theirs = (x509.load_pem_x509_csr(_request(URI, DNS)) for _ in range(2))
    der = mine.public_bytes(Encoding.DER)
    signature = theirs.signature.ljust(len(mine.signature), b"\0")[: len(mine.signature)]
    forged = der.replace(mine.signature, signature)
    return x509.load_der_x509_csr(forged).public_bytes(Encoding.PEM)


def test_a_certificate_for_a_request_names_the_module_and_is_valid_for_the_requested_key() -> None:
    root = make_root(FEDERATION)
    _, request = make_request(federation=FEDERATION, name=NAME)
    (certificate,) = certificates_in(sign_request(root, request, federation=FEDERATION, name=NAME))
    assert key_fingerprint(certificate) == requested_key(request, federation=FEDERATION, name=NAME)
    assert is_signed((certificate,), roots=root.certificate)
    assert is_signed((certificate,), roots=root.certificate, as_server=SystemId(NAME))


def test_requests_for_one_key_have_one_fingerprint() -> None:
    key, first = make_request(federation=FEDERATION, name=NAME)
    again, second = make_request(federation=FEDERATION, name=NAME, key=key)
    assert again == key
    found = {requested_key(each, federation=FEDERATION, name=NAME) for each in (first, second)}
    assert len(found) == 1


def test_a_request_to_be_an_authority_is_signed_as_a_module() -> None:
    request = _request(URI, DNS, is_ca=True)
    (certificate,) = certificates_in(sign_request(make_root(FEDERATION), request, federation=FEDERATION, name=NAME))
    assert not is_authority(certificate)


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A request, and what is wrong with it."""

    request: bytes
    why: str


BAD = {
    "no names": Bad(request=_request(), why="no readable names"),
    "a name of an unknown kind": Bad(request=_request_with(X400_ADDRESS), why="no readable names"),
    "no PEM": Bad(request=b"-----BEGIN CERTIFICATE REQUEST-----\nnonsense", why="cannot be read"),
    "another name": Bad(
        request=_request(x509.UniformResourceIdentifier("messiahs://campus/cs"), DNS), why="not URI:messiahs"
    ),
    "another DNS name": Bad(request=_request(URI, x509.DNSName("cs")), why="not URI:messiahs"),
    "two names": Bad(
        request=_request(URI, DNS, x509.UniformResourceIdentifier("messiahs://campus/cs")), why="not URI:messiahs"
    ),
    "no URI": Bad(request=_request(DNS), why="not URI:messiahs"),
    "a short key": Bad(
        request=_request(URI, DNS, key=rsa.generate_private_key(65_537, 1_024)), why="has 1024 bits, not 2048 to 4096"
    ),
    "another kind of key": Bad(
        request=_request(URI, DNS, key=ed25519.Ed25519PrivateKey.generate()), why="neither of elliptic curves nor RSA"
    ),
    "the signature of another": Bad(request=_forged(), why="not signed by its own key"),
    "too long": Bad(request=b"x" * (CERTIFICATE_REQUEST_LIMIT_BYTES + 1), why="is longer than 16384 bytes"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_request_is_refused_with_the_reason(bad: Bad) -> None:
    root = make_root(FEDERATION)
    for judge in (requested_key, lambda request, **names: sign_request(root, request, **names)):
        with pytest.raises(ValueError, match=bad.why):
            judge(bad.request, federation=FEDERATION, name=NAME)


def test_a_request_with_a_name_of_an_unknown_kind_names_no_module() -> None:
    with pytest.raises(ValueError, match="no readable names"):
        requested_name(_request_with(X400_ADDRESS))
