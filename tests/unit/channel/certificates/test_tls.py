"""Keys and certificates: their content, and the peers that they admit."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from messiahs.channel.certificates.tls import KeyAndCertificate, issue, make_root, write


def test_a_module_s_certificate_names_it_and_is_signed_by_the_root() -> None:
    root = make_root("campus")
    issued = issue(root, federation="campus", name="blays.xinu")
    certificate = x509.load_pem_x509_certificate(issued.certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(root.certificate))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["messiahs://campus/blays.xinu"]
    assert names.get_values_for_type(x509.DNSName) == ["blays.xinu"]
    assert certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(days=825)


def test_a_module_can_sign_nobody() -> None:
    issued = issue(make_root("campus"), federation="campus", name="cs")
    constraints = x509.load_pem_x509_certificate(issued.certificate).extensions.get_extension_for_class(
        x509.BasicConstraints
    )
    assert constraints.critical
    assert not constraints.value.ca


def test_only_the_owner_can_read_a_key_also_when_it_replaces_one_that_all_could_read(tmp_path: Path) -> None:
    root = make_root("campus")
    key_file = tmp_path / "tls" / "root.key"
    key_file.parent.mkdir()
    key_file.touch(mode=0o666)
    write(root, certificate_file=tmp_path / "tls" / "root.pem", key_file=key_file)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert load_pem_private_key(key_file.read_bytes(), password=None)
    assert (tmp_path / "tls" / "root.pem").read_bytes() == root.certificate


def test_the_root_whose_key_it_is_signs_although_its_predecessor_lies_before_it() -> None:
    old, new = make_root("old"), make_root("new")
    both = KeyAndCertificate(key=new.key, certificate=old.certificate + new.certificate)
    certificate = x509.load_pem_x509_certificate(issue(both, federation="campus", name="cs").certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(new.certificate))
    with pytest.raises(ValueError, match="the key belongs to none of the certificates"):
        issue(KeyAndCertificate(key=new.key, certificate=old.certificate), federation="campus", name="cs")
