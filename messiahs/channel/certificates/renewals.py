"""Certificates that modules and administrators show: whose they are, and whether this site's root signed them."""

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.errors import CertificateError


def name_of_valid(certificate: bytes, *, roots: bytes, federation: str) -> str:
    """Return the name in a certificate (PEM) that one of some roots (PEM) has signed and that is valid now.

    Raises a `CertificateError` if it is not, or names none or another federation.
    """
    if not is_signed(certificates_in(certificate), roots=roots):
        raise CertificateError("the certificate that is to be renewed is not valid, or not of this site")
    return _name_in(certificate, federation)


def name_of_signed(certificate: bytes, *, roots: bytes, federation: str) -> str:
    """Return the name in a certificate (PEM) that one of some roots (PEM) has signed, valid or not.

    Raises a `CertificateError` if none has, or it names none or another federation.
    """
    keys = (each.public_key() for each in x509.load_pem_x509_certificates(roots))
    if not any(has_signed(key, certificate) for key in keys if isinstance(key, ec.EllipticCurvePublicKey)):
        raise CertificateError(f"the certificate was signed by no root of {federation} that is here")
    return _name_in(certificate, federation)


def has_signed(key: ec.EllipticCurvePublicKey, certificate: bytes) -> bool:
    """Whether a key has signed the first certificate of a text (PEM)."""
    try:
        found = x509.load_pem_x509_certificates(certificate)[0]
        algorithm = found.signature_hash_algorithm
        assert algorithm is not None, "certificates of modules are signed with a hash"
        key.verify(found.signature, found.tbs_certificate_bytes, ec.ECDSA(algorithm))
    except (ValueError, AssertionError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _name_in(certificate: bytes, federation: str) -> str:
    prefix = f"messiahs://{federation}/"
    try:
        found = x509.load_pem_x509_certificates(certificate)[0]
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise CertificateError(f"the certificate cannot be read: {error}") from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1 or not uris[0].startswith(prefix):
        raise CertificateError(f"the certificate names no module of {federation}")
    return uris[0].removeprefix(prefix)
