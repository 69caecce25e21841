"""The root of a site signs for one key of each name, and what it revokes stays revoked."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from messiahs.channel.certificates.fingerprints import certificates_in, is_authority, key_fingerprint
from messiahs.channel.certificates.requests import make_request, requested_key, requested_name
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import make_root, names_of, new_key, private_pem, write
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.errors import CertificateError


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Make a site of the federation `campus` with its root."""
    made = tmp_path / "campus"
    write(make_root("campus"), certificate_file=made / "tls" / "root.pem", key_file=made / "tls" / "root.key")
    return made


def make_key() -> bytes:
    return private_pem(new_key())


def request(name: str, key: bytes | None = None, *, federation: str = "campus") -> bytes:
    return make_request(federation=federation, name=name, key=key)[1]


def sign_due(root: SiteRoot, key: bytes) -> bytes:
    """Return a certificate of `cs` in the last third of its lifetime: it is backdated by a day."""
    return root.sign(request("cs", key), "cs", lifetime=timedelta(hours=2))


def test_a_request_of_a_module_becomes_a_certificate_of_the_site_for_its_key(directory: Path) -> None:
    root, csr = SiteRoot.load(directory), request("cs.purdue")
    made = certificates_in(root.sign(csr, "cs.purdue"))
    assert is_signed(made, roots=root.roots)
    assert key_fingerprint(made[0]) == requested_key(csr, federation="campus", name="cs.purdue")
    assert requested_name(csr) == ("campus", "cs.purdue")
    (entry,) = root.issued.of("cs.purdue")
    assert entry.key == key_fingerprint(made[0]).hex()
    assert stat.S_IMODE((directory / "tls" / "issued.json").stat().st_mode) == 0o600


def test_what_a_request_asks_for_beyond_key_and_name_is_ignored(directory: Path) -> None:
    key = new_key()
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName(names_of("campus", "cs")), critical=False)
    made = SiteRoot.load(directory).sign(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), "cs")
    assert not is_authority(certificates_in(made)[0])


def test_another_key_for_a_name_is_signed_only_when_that_is_said(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    root.sign(request("cs", key), "cs")
    root.sign(request("cs", key), "cs")
    with pytest.raises(CertificateError, match=r"`cs` has a certificate for another key.*--new-key"):
        root.sign(request("cs"), "cs")
    root.sign(request("cs"), "cs", is_new_key=True)
    with pytest.raises(CertificateError, match="another key"):
        root.sign(request("cs", key), "cs")


@pytest.mark.parametrize(
    ("csr", "text"),
    [
        (request("xinu"), "names messiahs://campus/xinu, xinu, not URI:messiahs://campus/cs and DNS:cs"),
        (request("cs", federation="other"), "names messiahs://other/cs, cs, not"),
        (b"nothing", "cannot be read"),
        (request("cs") * 40, "longer than"),
    ],
)
def test_a_request_that_is_of_no_use_is_refused_with_the_reason(directory: Path, csr: bytes, text: str) -> None:
    with pytest.raises(CertificateError, match=text):
        SiteRoot.load(directory).sign(csr, "cs")
    assert SiteRoot.load(directory).issued.certificates == ()


def test_a_revoked_key_gets_no_other_certificate_not_even_as_a_new_one(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    made = root.sign(request("cs", key), "cs")
    other = root.sign(request("xinu"), "xinu")
    (latest,) = root.issued.of("cs")
    revoked = root.revoke(frozenset({latest.serial}))
    assert revoked.holds(certificates_in(made)[0])
    assert not revoked.holds(certificates_in(other)[0])
    with pytest.raises(CertificateError, match="was revoked, and its key gets no other one"):
        root.sign(request("cs", key), "cs", is_new_key=True)
    with pytest.raises(CertificateError, match="was revoked"):
        root.renew(request("cs", key), made)
    anew = root.sign(request("cs"), "cs", is_new_key=True)
    assert not root.revocations.holds(certificates_in(anew)[0])


def test_each_list_of_revoked_certificates_has_a_higher_number_and_all_of_the_last_one(directory: Path) -> None:
    root = SiteRoot.load(directory)
    first, second = (root.sign(request(name), name) for name in ("cs", "xinu"))
    serials = [entry.serial for entry in root.issued.certificates]
    before = root.revoke(frozenset(serials[:1]))
    after = root.revoke(frozenset(serials[1:]))
    assert after.number > before.number
    assert all(after.holds(certificates_in(each)[0]) for each in (first, second))
    # A list that was lost is made again from what was noted.
    (directory / "tls" / "revoked.pem").unlink()
    assert set(root.revoke(frozenset()).serials) == set(after.serials)


def test_a_certificate_is_renewed_for_its_own_key_and_name_alone(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    made = sign_due(root, key)
    renewed = certificates_in(root.renew(request("cs", key), made))[0]
    assert key_fingerprint(renewed) == key_fingerprint(certificates_in(made)[0])
    assert renewed != certificates_in(made)[0]
    with pytest.raises(CertificateError, match="a renewed certificate keeps the key"):
        root.renew(request("cs"), made)
    with pytest.raises(CertificateError, match="names messiahs://campus/xinu, xinu, not"):
        root.renew(request("xinu", key), made)
    write(make_root("campus"), certificate_file=directory / "tls" / "root.pem", key_file=directory / "tls" / "root.key")
    with pytest.raises(CertificateError, match="not valid, or not of this site"):
        SiteRoot.load(directory).renew(request("cs", key), made)


def test_without_the_key_of_the_root_the_text_says_where_it_is_done(directory: Path) -> None:
    (directory / "tls" / "root.key").unlink()
    assert not SiteRoot.is_at(directory)
    with pytest.raises(CertificateError, match="is done where the key of the site's root lies"):
        SiteRoot.load(directory)
