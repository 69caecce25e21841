"""While the root of a site is replaced, `certificate show` tells both apart, and says when the old one may go."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import make_root, write
from messiahs.cli.certificate.signers import signing_root
from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.main import main
from messiahs.errors import RevocationListError
from tests.contract.authorities import Authority, naming

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a host with the root of `campus`, the module `cs`, and a certificate that it signed for `xinu` elsewhere."""
    directory = tmp_path / "first" / "campus"
    directory.mkdir(parents=True, mode=0o700)
    make_certificates(directory, ["cs"])
    sign_elsewhere(directory)
    return directory


def sign_elsewhere(home: Path) -> None:
    _, request = make_request(federation="campus", name="xinu", key=None)
    SiteRoot.load(home).sign(request, "xinu", is_new_key=True)


def replace_root(home: Path) -> tuple[str, str]:
    """Append a new root to the old one and use its key; return the fingerprints of both."""
    file, new = home / "tls" / "root.pem", make_root("campus")
    both = file.read_bytes() + new.certificate
    write(new, certificate_file=file, key_file=home / "tls" / "root.key")
    file.write_bytes(both)
    old, young = (certificate_fingerprint(each).hex() for each in certificates_in(both))
    return old, young


def keep_newest_root(home: Path) -> None:
    file = home / "tls" / "root.pem"
    file.write_bytes(b"-----BEGIN" + file.read_bytes().split(b"-----BEGIN")[-1])


def run(*words: str, home: Path) -> int:
    return main(["certificate", *words, "--state", str(home.parent)])


def shown(home: Path, capsys: Capture) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and what is said about each module."""
    capsys.readouterr()
    code = run("show", "--json", home=home)
    found = json.loads(capsys.readouterr().out)["certificates"]
    return code, {each["name"]: each for each in found if each["kind"] != "root"}


def printed(home: Path, capsys: Capture) -> str:
    capsys.readouterr()
    run("show", home=home)
    return capsys.readouterr().out


def test_the_issuer_of_each_certificate_is_one_of_two_roots_with_the_same_name(home: Path, capsys: Capture) -> None:
    assert "of these certificates the root" not in printed(home, capsys)
    old, new = replace_root(home)
    code, found = shown(home, capsys)
    assert code == 0
    assert {name: each["issuer_fingerprint"] for name, each in found.items()} == {"cs": old, "xinu": old}
    text = printed(home, capsys)
    assert f"of these certificates the root {old[:8]} of campus has signed cs, xinu\n" in text
    assert f"of these certificates the root {new[:8]} of campus has signed none that is valid\n" in text
    assert run("renew", home=home) == 0
    _, found = shown(home, capsys)
    assert {name: each["issuer_fingerprint"] for name, each in found.items()} == {"cs": new, "xinu": old}
    sign_elsewhere(home)
    text = printed(home, capsys)
    assert re.search(rf"^cs +module +campus root {new[:8]}  ", text, re.MULTILINE)
    assert f"of these certificates the root {old[:8]} of campus has signed none that is valid\n" in text


def test_what_is_revoked_does_not_need_its_root_any_more(home: Path, capsys: Capture) -> None:
    old, _ = replace_root(home)
    assert run("renew", home=home) == 0
    assert run("revoke", "xinu", home=home) == 0
    assert shown(home, capsys)[1]["xinu"]["issuer_fingerprint"] == old
    assert f"the root {old[:8]} of campus has signed none that is valid\n" in printed(home, capsys)


def test_a_certificate_of_a_root_that_was_removed_is_named(home: Path, capsys: Capture) -> None:
    replace_root(home)
    keep_newest_root(home)
    code, found = shown(home, capsys)
    assert code == 1
    assert {name: each["state"] for name, each in found.items()} == dict.fromkeys(found, "signed by no root here")
    assert found["cs"]["issuer_fingerprint"] == ""
    assert "is signed by no root here; `messiahs certificate renew` renews it" in found["cs"]["warning"]
    assert found["xinu"]["warning"] == ""


def test_a_root_signs_through_the_authorities_behind_a_certificate_and_no_other_one_does() -> None:
    root, other = Authority("campus root"), Authority("campus root")
    below = Authority("second", above=Authority("first", above=root))
    roots = x509.load_pem_x509_certificates(other.root + root.root)
    direct = x509.load_pem_x509_certificates(root.sign(naming("cs")).certificate)
    assert signing_root(direct, roots) == roots[1]
    assert signing_root(direct, roots[:1]) is None
    # The file of `below` has its own authority alone, so the chain has a gap.
    broken = x509.load_pem_x509_certificates(below.sign(naming("cs")).certificate)
    assert signing_root(broken, roots) is None
    middle = x509.load_pem_x509_certificates(Authority("first", above=root).sign(naming("cs")).certificate)
    assert (len(middle), signing_root(middle, roots)) == (2, roots[1])
    # Nor does a root that is only written behind.
    foreign = x509.load_pem_x509_certificates(other.sign(naming("cs")).certificate)
    assert signing_root([*foreign, roots[1]], roots[1:]) is None
    assert signing_root([], roots) is None


@pytest.mark.parametrize("damaged", [b"", b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
def test_a_damaged_list_is_made_anew_from_what_the_record_has_noted(
    home: Path, capsys: Capture, damaged: bytes
) -> None:
    assert run("revoke", "xinu", home=home) == 0
    serials = SiteRoot.load(home).revocations.serials.keys()
    (home / "tls" / "revoked.pem").write_bytes(damaged)
    capsys.readouterr()
    assert run("revoke", home=home) == 0
    told = capsys.readouterr().err
    assert "signs it again, with the certificates that tls/issued.json notes as revoked" in told
    assert SiteRoot.load(home).revocations.serials.keys() == serials


def test_the_old_root_is_needed_until_the_new_one_has_signed_the_list_of_revoked_certificates(
    home: Path, capsys: Capture
) -> None:
    assert run("revoke", "xinu", home=home) == 0
    old, new = replace_root(home)
    assert run("renew", home=home) == 0
    assert f"the root {old[:8]} of campus has signed the list of revoked ones\n" in printed(home, capsys)
    assert run("revoke", home=home) == 0
    text = printed(home, capsys)
    assert f"the root {old[:8]} of campus has signed none that is valid\n" in text
    assert f"the root {new[:8]} of campus has signed cs, the list of revoked ones\n" in text


def test_a_list_of_a_root_that_was_removed_is_named_with_all_certificates_and_signed_again(
    home: Path, capsys: Capture
) -> None:
    assert run("revoke", "xinu", home=home) == 0
    serials = SiteRoot.load(home).revocations.serials.keys()
    assert len(serials) == 1
    replace_root(home)
    keep_newest_root(home)
    assert run("renew", home=home) == 0
    problem = "no root of this site has signed the list of revoked certificates"
    with pytest.raises(RevocationListError, match=f"{problem}; `messiahs certificate revoke` signs it again"):
        _ = SiteRoot.load(home).revocations
    code, found = shown(home, capsys)
    assert (code, sorted(found)) == (1, ["cs", "revoked.pem", "xinu"])
    assert f"{home}/tls/revoked.pem cannot be read: {problem}; `messiahs" in found["revoked.pem"]["warning"]
    assert run("revoke", home=home) == 0
    assert SiteRoot.load(home).revocations.serials.keys() == serials
    code, found = shown(home, capsys)
    assert (code, sorted(found)) == (0, ["cs", "xinu"])
