"""Revoked certificates: a list (CRL) that the root of a site has signed, in the file revoked.pem beside the roots.

A list counts only if one of the site's own roots signed it. Of several, the one with the highest number counts. A
certificate stays on the list until it has expired. The time at which a list ends is ignored: it counts until a newer
one replaces it, so that nobody returns because a list was not renewed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in, serial_of
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.core.model.texts import printable
from messiahs.errors import RevocationListError

if TYPE_CHECKING:
    from cryptography import x509

REVOKED_FILE: Final = "revoked.pem"
LIST_LIMIT_BYTES: Final = 1_000_000
"""About 20,000 certificates."""
SIGNED_AGAIN: Final = "`messiahs certificate revoke` where tls/root.key is signs it again; copy it from there"
"""What to do about a list in a file that is of no use."""
_PEM: Final = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----\s*", re.DOTALL)
_NOTHING: Final[Mapping[int, datetime]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocations:
    """A list of revoked certificates: its number, serial numbers with the time of revocation, and the list in PEM.

    `signer` is the fingerprint of the root that has signed it.
    """

    number: int = 0
    serials: Mapping[int, datetime]
    pem: bytes = b""
    signer: bytes = b""

    def holds(self, certificate: bytes) -> bool:
        """Whether a certificate in DER is on the list. Raises a `ValueError` if this is not a certificate."""
        return bool(self.serials) and serial_of(certificate) in self.serials

    def holds_any(self, pem: bytes) -> bool:
        """Whether the first certificate in a text (PEM) is on the list. Raises a `ValueError` as `holds`."""
        return any(map(self.holds, certificates_in(pem)[:1]))


NO_REVOCATIONS: Final = Revocations(serials=_NOTHING)


def read_revocations(pem: bytes, roots: bytes) -> Revocations:
    """Read a list that one of some roots (PEM) has signed.

    A `RevocationListError` says what is wrong with it.
    """
    # An expensive import, needed only where something was revoked.
    from cryptography import x509  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - see above

    if len(pem) > LIST_LIMIT_BYTES:
        raise RevocationListError(f"the list of revoked certificates is longer than {LIST_LIMIT_BYTES} bytes")
    if _PEM.fullmatch(pem.strip()) is None:
        raise RevocationListError("this is no list of revoked certificates in PEM")
    try:
        with malformed_as_value_error():
            found = x509.load_pem_x509_crl(pem)
            read = x509.load_pem_x509_certificates(roots)
            signer = next((each for each in read if _has_signed(each, found)), None)
            if signer is None:
                raise RevocationListError("no root of this site has signed the list of revoked certificates")
            number = found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
            serials = {each.serial_number: each.revocation_date_utc for each in found}
    except ValueError as error:
        raise RevocationListError(
            f"the list of revoked certificates cannot be read: {printable(str(error))}"
        ) from error
    fingerprint = certificate_fingerprint(signer.public_bytes(Encoding.DER))
    return Revocations(number=number, serials=serials, pem=pem, signer=fingerprint)


def _has_signed(root: "x509.Certificate", found: "x509.CertificateRevocationList") -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm  # noqa: PLC0415 - an expensive import

    try:
        return found.is_signature_valid(root.public_key())  # type: ignore[arg-type] # other keys raise a TypeError
    except (TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
