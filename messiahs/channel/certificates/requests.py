"""Certificate requests: a key is made where it is used, and only the request for its certificate travels.

A request (PKCS #10, PEM) names a module as its certificate will: with a URI and a DNS name. Its signature proves that
whoever made it has the key.
"""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from messiahs.channel.certificates.fingerprints import FINGERPRINT_BYTES
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.channel.certificates.tls import (
    MODULE_LIFETIME,
    KeyAndCertificate,
    names_of,
    new_key,
    private_pem,
    sign_module,
    subject_of,
)
from messiahs.core.model.names import problem_with_name
from messiahs.core.model.texts import printable
from messiahs.wire.limits import CERTIFICATE_REQUEST_LIMIT_BYTES

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

_URI: Final = re.compile(r"messiahs://([a-z0-9-]+)/((?=.{1,255}\Z)[a-z0-9-]+(?:\.[a-z0-9-]+)*)", re.ASCII)
_RSA_BITS: Final = (2_048, 4_096)
_CURVE_BITS: Final = (256, 521)


def make_request(*, federation: str, name: str, key: bytes | None = None) -> tuple[bytes, bytes]:
    """Return a private key (PEM; None: a new one) and a request for a certificate that names a module.

    A `ValueError` if the key cannot be read or is not of elliptic curves.
    """
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key  # noqa: PLC0415 - as above

    own = new_key() if key is None else load_pem_private_key(key, password=None)
    if not isinstance(own, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of elliptic curves")  # noqa: TRY004 - the content of a file is wrong
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject_of(name))
    builder = builder.add_extension(x509.SubjectAlternativeName(names_of(federation, name)), critical=False)
    return private_pem(own), builder.sign(own, hashes.SHA256()).public_bytes(Encoding.PEM)


def requested_key(request: bytes, *, federation: str, name: str) -> bytes:
    """Return the fingerprint of the public key in a request (PEM); it equals that of its certificates.

    A `ValueError` says why no certificate can follow: it is too long or malformed, is not signed by its own key, names
    another module or federation, or has a weak key.
    """
    import hashlib  # noqa: PLC0415 - as above

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415 - as above

    der = _checked(request, federation=federation, name=name).public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).digest()[:FINGERPRINT_BYTES]


def plain_request(request: bytes) -> bytes:
    """Return a request (PEM) without the texts around it, which could be anything; a `ValueError` if it is none."""
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - as above

    with malformed_as_value_error():
        return x509.load_pem_x509_csr(request).public_bytes(Encoding.PEM)


def requested_name(request: bytes) -> tuple[str, str]:
    """Return the federation and the name of the module in a request (PEM).

    A `ValueError` if it names none, or one that no system can have.
    """
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it

    if len(request) > CERTIFICATE_REQUEST_LIMIT_BYTES:
        raise ValueError(f"the certificate request is longer than {CERTIFICATE_REQUEST_LIMIT_BYTES} bytes")
    try:
        with malformed_as_value_error():
            read = x509.load_pem_x509_csr(request)
    except ValueError as error:
        text = "it is no certificate request (PEM); `messiahs certificate request NAME` makes one at the host of NAME"
        raise ValueError(text) from error
    names = _names_in(read)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    match = _URI.fullmatch(uris[0]) if len(uris) == 1 else None
    if match is None:
        raise ValueError("the certificate request names no module, as `messiahs certificate request` does")
    problem = problem_with_name(match[2])
    if problem:
        raise ValueError(f"the certificate request names `{match[2]}`, which cannot be the name of a system: {problem}")
    return match[1], match[2]


def sign_request(
    root: KeyAndCertificate, request: bytes, *, federation: str, name: str, lifetime: timedelta = MODULE_LIFETIME
) -> bytes:
    """Return the certificate (PEM) for a request, signed by a root; a `ValueError` as `requested_key` raises.

    What the request says beyond the names and the key is ignored.
    """
    public = _checked(request, federation=federation, name=name)
    return sign_module(root, federation=federation, name=name, public_key=public, lifetime=lifetime)


def _checked(request: bytes, *, federation: str, name: str) -> "ec.EllipticCurvePublicKey | rsa.RSAPublicKey":
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - as above

    if len(request) > CERTIFICATE_REQUEST_LIMIT_BYTES:
        raise ValueError(f"the certificate request is longer than {CERTIFICATE_REQUEST_LIMIT_BYTES} bytes")
    try:
        with malformed_as_value_error():
            read = x509.load_pem_x509_csr(request)
            public, is_signed = read.public_key(), read.is_signature_valid
    except ValueError as error:
        raise ValueError(f"the certificate request cannot be read: {error}") from error
    if not isinstance(public, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        text = "the key of the certificate request is neither of elliptic curves nor RSA"
        raise ValueError(text)  # noqa: TRY004 - what another system sent is wrong
    low, high = _RSA_BITS if isinstance(public, rsa.RSAPublicKey) else _CURVE_BITS
    if not low <= public.key_size <= high:
        raise ValueError(f"the key of the certificate request has {public.key_size} bits, not {low} to {high}")
    if not is_signed:
        raise ValueError("the certificate request is not signed by its own key")
    _check_names(read, federation=federation, name=name)
    return public


def _check_names(read: "x509.CertificateSigningRequest", *, federation: str, name: str) -> None:
    found, wanted = list(_names_in(read)), names_of(federation, name)
    if sorted(map(repr, found)) != sorted(map(repr, wanted)):
        named = printable(", ".join(str(each.value) for each in found[:3]))
        raise ValueError(f"the certificate request names {named or 'nobody'}, not URI:{wanted[0].value} and DNS:{name}")


def _names_in(read: "x509.CertificateSigningRequest") -> "x509.SubjectAlternativeName":
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it

    try:
        with malformed_as_value_error():
            return read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except ValueError as error:
        raise ValueError(f"the certificate request has no readable names: {printable(str(error))}") from error
