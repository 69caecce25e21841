"""Who gets which certificate again, and which ones are revoked: what an attacker with one key can try."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.issued import Issued, alone
from messiahs.channel.certificates.requests import make_request, sign_request
from messiahs.channel.certificates.site_root import VALID_LIMIT, SiteRoot
from messiahs.channel.certificates.tls import KeyAndCertificate, make_root, new_key, private_pem, write
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.errors import CertificateError
from tests.waiting import eventually


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Make a site of the federation `campus` with its root."""
    made = tmp_path / "campus"
    write(make_root("campus"), certificate_file=made / "tls" / "root.pem", key_file=made / "tls" / "root.key")
    return made


def make_key() -> bytes:
    return private_pem(new_key())


def request(name: str, key: bytes | None = None) -> bytes:
    return make_request(federation="campus", name=name, key=key)[1]


def sign_due(root: SiteRoot, key: bytes, *, name: str = "cs") -> bytes:
    """Return a certificate in the last third of its lifetime: it is backdated by a day."""
    return root.sign(request(name, key), name, lifetime=timedelta(hours=2))


@pytest.mark.parametrize("block", ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"])
@pytest.mark.parametrize("is_first", [True, False])
def test_two_certificates_in_one_text_are_refused(directory: Path, block: str, *, is_first: bool) -> None:
    root, key = SiteRoot.load(directory), make_key()
    own, foreign = sign_due(root, key), sign_due(root, make_key(), name="xinu")
    other = foreign.replace(b" CERTIFICATE", b" " + block.encode())
    before = root.issued
    for name in ("cs", "xinu"):
        with pytest.raises(CertificateError, match="not exactly one certificate in PEM"):
            root.renew(request(name, key), other + own if is_first else own + other)
    assert root.issued == before


def test_a_certificate_is_renewed_only_in_its_last_third_and_then_once(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    made = root.sign(request("cs", key), "cs")
    assert root.renew(request("cs", key), made) == made
    due = sign_due(root, key)
    renewed = root.renew(request("cs", key), due)
    assert renewed not in (made, due)
    # Whoever lost the answer gets the same one again.
    for shown in (made, due, renewed):
        assert root.renew(request("cs", key), shown) == renewed
    assert len(root.issued.of("cs")) == 3


def test_a_new_root_renews_at_once_what_the_last_one_signed_for_a_key_that_is_noted(directory: Path) -> None:
    last, key, unknown = SiteRoot.load(directory), make_key(), make_key()
    made, foreign = last.sign(request("cs", key), "cs"), last.sign(request("xinu", unknown), "xinu")
    new = make_root("campus")
    both = KeyAndCertificate(key=new.key, certificate=new.certificate + last.roots)
    write(both, certificate_file=directory / "tls" / "root.pem", key_file=directory / "tls" / "root.key")
    root = SiteRoot.load(directory)
    renewed = root.renew(request("cs", key), made)
    assert renewed != made
    assert is_signed(certificates_in(renewed), roots=new.certificate)
    replace(root.issued, keys={"cs": root.issued.keys["cs"]}).write(directory / "tls")
    with pytest.raises(CertificateError, match="signed by another root, and its key is not noted here"):
        root.renew(request("xinu", unknown), foreign)


def test_a_certificate_that_was_not_noted_is_noted_when_it_is_shown(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    made, due = root.sign(request("cs", key), "cs"), sign_due(root, key)
    # As release 0.1.0 leaves it.
    (directory / "tls" / "issued.json").unlink()
    assert root.renew(request("cs", key), made) == made
    root.renew(request("cs", key), due)
    revoked = root.revoke(names=frozenset({"cs"}))
    assert all(revoked.holds_any(each) for each in (made, due))


def test_a_name_has_a_bounded_number_of_valid_certificates(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    for _ in range(VALID_LIMIT):
        root.sign(request("cs", key), "cs")
    with pytest.raises(CertificateError, match="`cs` has 32 valid certificates, and gets no other one"):
        root.sign(request("cs", key), "cs")
    root.sign(request("xinu"), "xinu")


def test_a_list_that_would_be_too_long_is_not_written_and_the_last_one_stays(directory: Path) -> None:
    root = SiteRoot.load(directory)
    root.sign(request("cs"), "cs")
    first = root.revoke(frozenset({"abc"}))
    many = frozenset(f"{(1 << 152) + number:x}" for number in range(25_000))
    with pytest.raises(CertificateError, match="nothing was revoked, and the last list stays in force"):
        root.revoke(many)
    assert root.revocations == first
    assert set(root.revoke(names=frozenset({"cs"})).serials) > {0xABC}


def test_a_name_is_revoked_with_what_was_renewed_while_the_command_waited(directory: Path) -> None:
    root, key = SiteRoot.load(directory), make_key()
    due, folder = sign_due(root, key), directory / "tls"
    signer = KeyAndCertificate(key=(folder / "root.key").read_bytes(), certificate=root.roots)
    with ThreadPoolExecutor() as pool:
        with alone(folder):
            waiting = pool.submit(root.revoke, names=frozenset({"cs"}))
            eventually(lambda: somebody_waits_for(folder / "lock"))
            made = sign_request(signer, request("cs", key), federation="campus", name="cs")
            root.issued.having(Issued.of(certificates_in(made)[0], "cs")).write(folder)
        revoked = waiting.result()
    assert all(revoked.holds_any(each) for each in (due, made))
    for shown in (due, made):
        with pytest.raises(CertificateError, match="was revoked"):
            root.renew(request("cs", key), shown)


def somebody_waits_for(lock: Path) -> bool:
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f" {os.getpid()} " in line and f":{lock.stat().st_ino} " in line for line in lines)
