"""Files of certificates that others made or that are damaged: `messiahs certificate` names the file and what to do."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import make_root
from messiahs.cli.certificate.signers import CHAIN_LIMIT, signing_root
from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.main import main
from messiahs.config.topology.files import problem_with_copy, problem_with_roots

Capture = pytest.CaptureFixture[str]
RESTORED = 'restore them from a backup, or give the site a new root: docs/administrators.md, "Certificates of modules"'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a host with the root of `campus` and the module `cs`, and work in a folder of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    directory = tmp_path / "first" / "campus"
    directory.mkdir(parents=True, mode=0o700)
    make_certificates(directory, ["cs"])
    return directory


def run(*words: str, home: Path) -> int:
    return main(["certificate", *words, "--state", str(home.parent)])


def of_version_ten(pem: bytes) -> bytes:
    """Return a certificate with another version in place of the third, 2."""
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    changed = der.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020109"), 1)
    assert changed != der
    text = base64.encodebytes(changed)
    return b"-----BEGIN CERTIFICATE-----\n" + text + b"-----END CERTIFICATE-----\n"


def change(file: Path) -> None:
    file.write_bytes(of_version_ten(file.read_bytes()))


def shown(home: Path, capsys: Capture) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert run("show", "--json", home=home) == 1
    return {each["name"]: each for each in json.loads(capsys.readouterr().out)["certificates"]}


def test_a_certificate_of_a_version_that_is_none_is_unreadable(home: Path, capsys: Capture) -> None:
    file = home / "cs" / "certificate.pem"
    change(file)
    found = shown(home, capsys)["cs"]
    assert found["state"] == "unreadable"
    problem = (
        f"the certificate of cs ({file}) cannot be read: 9 is not a valid X509 version; `messiahs certificate renew`"
    )
    assert found["warning"].startswith(problem)
    assert run("revoke", str(file), home=home) == 1
    text = f"messiahs: {file}: the certificate was signed by no root of campus that is here\n"
    assert capsys.readouterr().err == text


def test_a_root_of_a_version_that_is_none_is_named_by_all_commands(home: Path, capsys: Capture) -> None:
    file = home / "tls" / "root.pem"
    change(file)
    assert shown(home, capsys)["root.pem"]["state"] == "unreadable"
    problem = f"{file} and root.key contain no root: 9 is not a valid X509 version; {RESTORED}\n"
    for words, whose in ((("revoke",), ""), (("renew", "cs"), "cs: ")):
        assert run(*words, home=home) == 1
        assert capsys.readouterr().err == f"messiahs: {whose}{problem}"
    # Another site that records it is told so, too.
    assert problem_with_roots(file) == f"the trust file {file} contains no certificate in PEM, or an invalid one"
    assert problem_with_copy(file, file) == ""


def test_a_chain_without_end_is_followed_as_far_as_any_verifier_would(home: Path, capsys: Capture) -> None:
    root = make_root("other").certificate
    (home / "cs" / "certificate.pem").write_bytes(root * (2 * sys.getrecursionlimit()))
    found = shown(home, capsys)["cs"]
    assert (found["state"], found["issuer_fingerprint"]) == ("signed by no root here", "")
    (other,) = x509.load_pem_x509_certificates(root)
    (campus,) = x509.load_pem_x509_certificates((home / "tls" / "root.pem").read_bytes())
    # Each of them was signed by the next one, and the last by itself alone.
    assert signing_root([other] * CHAIN_LIMIT, [campus]) is None
    assert signing_root([other] * CHAIN_LIMIT, [other]) == other


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"ends_at": "2036-01-01T00:00:00"},
            "Expected `datetime` with a timezone component - at `$.certificates[0].ends",
        ),
        ({"revoked_at": "2026-01-01T00:00:00"}, "Expected `datetime` with a timezone component - at `$.certificates"),
        ({"serial": "-5"}, "Expected `str` matching regex "),
        ({"serial": "zz"}, "Expected `str` matching regex "),
        ({"serial": "0"}, "Expected `str` matching regex "),
        ({"serial": "f" * 40}, "Expected `str` matching regex "),
        ({"serial": "1" * 41}, "Expected `str` matching regex "),
    ],
)
def test_a_record_with_times_or_numbers_that_are_none_is_named(
    home: Path, capsys: Capture, changes: dict[str, str], problem: str
) -> None:
    file = home / "tls" / "issued.json"
    record = json.loads(file.read_bytes())
    record["certificates"][0].update(changes)
    file.write_text(json.dumps(record))
    for words in (("show",), ("revoke",), ("revoke", "cs")):
        assert run(*words, home=home) == 1
        text = capsys.readouterr().err
        assert text.startswith(f"messiahs: {file} cannot be read: {problem}")
        assert text.endswith("; restore it from a backup\n")


@pytest.mark.parametrize("is_pem", [False, True])
def test_a_record_with_a_certificate_that_is_none_is_named_and_is_no_hindrance_to_other_commands(
    home: Path, capsys: Capture, *, is_pem: bool
) -> None:
    key, request = make_request(federation="campus", name="xinu")
    root = SiteRoot.load(home)
    made = root.sign(request, "xinu")
    file = home / "tls" / "issued.json"
    record = json.loads(file.read_bytes())
    (entry,) = (each for each in record["certificates"] if each["name"] == "xinu")
    entry["pem"] = of_version_ten(made).decode() if is_pem else "junk"
    file.write_text(json.dumps(record))
    assert run("show", home=home) == 1
    text = f"messiahs: {file} cannot be read: the certificate of xinu in it is of no use ("
    assert capsys.readouterr().err.startswith(text)
    # A module that renews its certificate gets the one that it shows.
    _, again = make_request(federation="campus", name="xinu", key=key)
    assert root.renew(again, made).strip() == made.strip()
    assert run("revoke", "xinu", home=home) == 0
    assert root.is_revoked(made)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("--out", "a name does not begin with `-`, or commands would take it for an option"),
        ("tls", "this name is used by a file beside the modules' folders"),
        ("cs.7", "the last part of a name is not all digits, or it would look like a task's id"),
    ],
)
def test_a_request_for_a_name_that_no_system_can_have_is_not_signed(
    home: Path, capsys: Capture, name: str, problem: str
) -> None:
    _, request = make_request(federation="campus", name=name)
    Path("odd.csr").write_bytes(request)
    assert run("sign", "odd.csr", home=home) == 1
    refused = f"names `{name}`, which cannot be the name of a system: {problem}"
    assert capsys.readouterr().err == f"messiahs: odd.csr: the certificate request {refused}\n"
    assert [str(each) for each in Path().iterdir()] == ["odd.csr"]
    assert SiteRoot.load(home).issued.of(name) == ()
    # Nor is one made.
    assert main(["certificate", "request", "--state", str(home.parent), "--", name]) == 2
    assert f"`{name}` cannot be the name of a system: {problem}" in capsys.readouterr().err
