"""Lists of revoked certificates that neighbors send: which are refused, and how."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtensionOID

from messiahs.channel.certificates.revocations import read_revocations
from messiahs.channel.certificates.tls import make_root, new_key
from messiahs.errors import CertificateError

X400_ADDRESS = bytes.fromhex("3004a3023000")
NOW = datetime.now(UTC)


def _made(key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType) -> bytes:
    builder = x509.CertificateRevocationListBuilder().issuer_name(x509.Name([]))
    builder = builder.last_update(NOW).next_update(NOW + timedelta(days=1))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


ODD = x509.UnrecognizedExtension(ExtensionOID.ISSUER_ALTERNATIVE_NAME, X400_ADDRESS)


def test_a_list_that_no_root_has_signed_is_refused_whatever_its_extensions_say() -> None:
    for extensions in ((), (x509.CRLNumber(7),), (ODD,)):
        with pytest.raises(CertificateError, match="no root of this site has signed"):
            read_revocations(_made(new_key(), *extensions), make_root("campus").certificate)


def test_a_list_of_the_root_with_extensions_that_cannot_be_read_is_refused() -> None:
    root = make_root("campus")
    key = load_pem_private_key(root.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    for extensions in ((), (x509.CRLNumber(7), ODD)):
        with pytest.raises(CertificateError, match="cannot be read"):
            read_revocations(_made(key, *extensions), root.certificate)
