"""Certificates that modules and administrators show: whose they are, and whether this site's root signed them."""

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from messiahs.channel.certificates.fingerprints import only_certificate_in
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.channel.certificates.own_certificate import Named, problem_with
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.core.model.texts import printable
from messiahs.errors import CertificateError


def shown_certificate(pem: bytes) -> bytes:
    """Return a certificate that somebody shows as DER; a `CertificateError` unless the text is exactly one."""
    try:
        return only_certificate_in(pem)
    except ValueError as error:
        raise CertificateError(str(error)) from error


def name_of_valid(certificate: bytes, *, roots: bytes, federation: str) -> str:
    """Return the name in a certificate (DER) that one of some roots (PEM) has signed and that is valid now.

    Raises a `CertificateError` if it is not, or names none or another federation.
    """
    if not is_signed((certificate,), roots=roots):
        raise CertificateError("the certificate is not valid, or not of this site")
    return _name_in(certificate, federation)


def name_of_signed(certificate: bytes, *, roots: bytes, federation: str) -> str:
    """Return the name in a certificate (DER) that one of some roots (PEM) has signed, valid or not.

    Raises a `CertificateError` if none has, it names none or another federation, or one of the roots cannot be read.
    """
    try:
        with malformed_as_value_error():
            keys = [each.public_key() for each in x509.load_pem_x509_certificates(roots)]
    except ValueError as error:
        raise CertificateError(f"a root of {federation} cannot be read: {printable(str(error))}") from error
    if not any(has_signed(key, certificate) for key in keys if isinstance(key, ec.EllipticCurvePublicKey)):
        raise CertificateError(f"the certificate was signed by no root of {federation} that is here")
    return _name_in(certificate, federation)


def has_signed(key: ec.EllipticCurvePublicKey, certificate: bytes) -> bool:
    """Whether a key has signed a certificate (DER)."""
    try:
        with malformed_as_value_error():
            found = x509.load_der_x509_certificate(certificate)
            algorithm = found.signature_hash_algorithm
            if algorithm is None:
                # Certificates of modules are signed with a hash.
                return False
            key.verify(found.signature, found.tbs_certificate_bytes, ec.ECDSA(algorithm))
    except (ValueError, InvalidSignature):
        return False
    return True


def problem_with_new(certificate: bytes, *, key: bytes, roots: bytes, federation: str, name: str) -> str:
    """Return why a module cannot use a certificate that it was given (all PEM); "" if it can.

    It is exactly one certificate, valid now, for the module's key and name, and one of the roots has signed it.
    """
    try:
        only = only_certificate_in(certificate)
    except ValueError as error:
        return str(error)
    given = Named(certificate, "that was given")
    problem = problem_with(given, Named(key, "the key file of the module"), federation=federation, name=name)
    return problem if problem or is_signed((only,), roots=roots) else "no root of this site has signed it"


def _name_in(certificate: bytes, federation: str) -> str:
    prefix = f"messiahs://{federation}/"
    try:
        with malformed_as_value_error():
            found = x509.load_der_x509_certificate(certificate)
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except ValueError as error:
        raise CertificateError(f"the certificate cannot be read: {printable(str(error))}") from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1 or not uris[0].startswith(prefix):
        raise CertificateError(f"the certificate names no module of {federation}")
    return uris[0].removeprefix(prefix)
