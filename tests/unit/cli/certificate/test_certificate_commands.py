"""`messiahs certificate`: keys stay where they are made, requests go in, certificates out."""

import json
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.own_certificate import problem_with_files
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import make_root, write
from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.main import main
from messiahs.errors import ClientError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a host with the root of `campus` and the module `cs`, and work in a folder of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    directory = tmp_path / "first" / "campus"
    directory.mkdir(parents=True, mode=0o700)
    make_certificates(directory, ["cs"])
    return directory


def run(*words: str, state: Path) -> int:
    return main(["certificate", *words, "--state", str(state)])


def shown(capsys: Capture, state: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    capsys.readouterr()
    code = run("show", "--json", state=state)
    found = json.loads(capsys.readouterr().out)["certificates"]
    return code, {each["name"]: each for each in found}


def test_a_file_that_is_no_request_is_called_that(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.txt").write_text("nothing of the kind")
    assert run("sign", "notes.txt", state=home.parent) == 1
    text = "it is no certificate request (PEM); `messiahs certificate request NAME` makes one at the host of NAME"
    assert capsys.readouterr().err == f"messiahs: notes.txt: {text}\n"


def test_a_request_from_one_host_is_signed_on_another_and_the_key_never_travels(home: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    assert run("request", "xinu", "--federation", "campus", state=second) == 0
    own = second / "campus" / "xinu"
    assert stat.S_IMODE((own / "key.pem").stat().st_mode) == 0o600
    assert b"PRIVATE" not in Path("xinu.csr").read_bytes()
    assert run("sign", "xinu.csr", state=tmp_path / "first") == 0
    Path("xinu.pem").rename(own / "certificate.pem")
    assert problem_with_files(own / "certificate.pem", own / "key.pem", federation="campus", name="xinu") == ""
    # Again, for a renewal by hand: the key stays.
    before = (own / "key.pem").read_bytes()
    assert run("request", "xinu", "--out", "again.csr", state=second) == 0
    assert (own / "key.pem").read_bytes() == before
    assert run("sign", "again.csr", "--days", "10", "--out", "again.pem", state=home.parent) == 0


def test_another_key_for_a_name_is_signed_only_with_the_option(home: Path, tmp_path: Path, capsys: Capture) -> None:
    for state in ("second", "third"):
        assert run("request", "xinu", "--federation", "campus", "--out", f"{state}.csr", state=tmp_path / state) == 0
    assert run("sign", "second.csr", "--out", "second.pem", state=home.parent) == 0
    assert run("sign", "third.csr", state=home.parent) == 1
    assert "third.csr: `xinu` has a certificate for another key" in capsys.readouterr().err
    assert run("sign", "third.csr", "--new-key", state=home.parent) == 0


def test_what_cannot_be_done_here_is_said_with_the_place_where_it_can(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert run("request", "xinu", state=tmp_path / "second") == 1
    assert "`--federation` must name the federation: none is under" in capsys.readouterr().err
    assert run("request", "xinu", "--federation", "campus", state=tmp_path / "second") == 0
    (tmp_path / "second" / "campus" / "tls").mkdir()
    for words in (("sign", "xinu.csr"), ("revoke", "xinu")):
        assert run(*words, state=tmp_path / "second") == 1
        assert "this is done where the key of the site's root lies" in capsys.readouterr().err
    assert run("revoke", "nobody", state=home.parent) == 1
    assert "the root of campus has signed no certificate of nobody; it has for cs" in capsys.readouterr().err
    assert run("request", "../cs", state=home.parent) == 2
    assert "`../cs` cannot be the name of a system: a name is small letters, digits and `-`" in capsys.readouterr().err


def test_show_names_what_is_revoked_or_ends_soon_with_the_remedy_and_its_code_says_so(
    home: Path, capsys: Capture
) -> None:
    code, found = shown(capsys, home.parent)
    assert code == 0
    assert set(found) == {"campus root", "cs"}
    assert (found["cs"]["issuer"], found["cs"]["state"], found["cs"]["days_left"]) == ("campus root", "valid", 824)
    root = SiteRoot.load(home)
    _, request = make_request(federation="campus", name="cs", key=(home / "cs" / "key.pem").read_bytes())
    (home / "cs" / "certificate.pem").write_bytes(root.sign(request, "cs", lifetime=timedelta(hours=1)))
    code, found = shown(capsys, home.parent)
    assert (code, found["cs"]["state"]) == (1, "soon")
    assert "expires in 0 days; `messiahs certificate renew`" in found["cs"]["warning"]
    assert run("revoke", "cs", state=home.parent) == 0
    code, found = shown(capsys, home.parent)
    assert (code, found["cs"]["state"]) == (1, "revoked")
    assert "request --new-key" in found["cs"]["warning"]
    (home / "cs" / "certificate.pem").write_text("half")
    assert shown(capsys, home.parent)[1]["cs"]["state"] == "unreadable"


def test_a_certificate_for_another_key_than_that_beside_it_is_unusable(home: Path, capsys: Capture) -> None:
    assert run("request", "cs", "--new-key", state=home.parent) == 0
    assert "do not restart the module" in capsys.readouterr().out
    code, found = shown(capsys, home.parent)
    assert (code, found["cs"]["state"]) == (1, "unusable")
    assert "is not for the key in" in found["cs"]["warning"]
    assert "so cs cannot be started" in found["cs"]["warning"]


def test_show_lists_what_the_root_has_signed_for_other_hosts(home: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("request", "xinu", "--federation", "campus", state=tmp_path / "second") == 0
    assert run("sign", "xinu.csr", state=home.parent) == 0
    assert run("revoke", "xinu.pem", state=home.parent) == 0
    code, found = shown(capsys, home.parent)
    assert (code, found["xinu"]["kind"], found["xinu"]["state"]) == (0, "issued", "revoked")


@pytest.mark.parametrize("by", ["name", "serial", "file"])
def test_all_certificates_of_a_module_are_revoked_or_one_by_its_number_or_file(
    home: Path, capsys: Capture, by: str
) -> None:
    first = (home / "cs" / "certificate.pem").read_bytes()
    assert run("renew", "cs", state=home.parent) == 0
    second = (home / "cs" / "certificate.pem").read_bytes()
    assert first != second
    root = SiteRoot.load(home)
    numbers = [each.serial for each in root.issued.of("cs")]
    assert len(numbers) == 2
    Path("old.pem").write_bytes(first)
    assert run("revoke", {"name": "cs", "serial": numbers[0], "file": "old.pem"}[by], state=home.parent) == 0
    assert root.revocations.holds_any(first)
    assert root.revocations.holds_any(second) == (by == "name")
    assert "wrote" in capsys.readouterr().out


def test_a_renewed_certificate_keeps_the_key_and_a_revoked_one_is_not_renewed(home: Path, capsys: Capture) -> None:
    key = key_fingerprint(certificates_in((home / "cs" / "certificate.pem").read_bytes())[0])
    assert run("renew", state=home.parent) == 0
    assert key_fingerprint(certificates_in((home / "cs" / "certificate.pem").read_bytes())[0]) == key
    assert run("revoke", "cs", state=home.parent) == 0
    assert run("renew", state=home.parent) == 1
    assert "was revoked, and its key gets no other one" in capsys.readouterr().err
    # Nor does a start renew it.
    before = (home / "cs" / "certificate.pem").read_bytes()
    (warning,) = make_certificates(home, ["cs"])
    assert "the certificate of `cs` was revoked" in warning
    assert (home / "cs" / "certificate.pem").read_bytes() == before
    # It returns with a new key alone.
    assert run("request", "cs", "--new-key", state=home.parent) == 0
    assert run("sign", "cs.csr", "--new-key", "--out", str(home / "cs" / "certificate.pem"), state=home.parent) == 0
    assert make_certificates(home, ["cs"]) == ()


def test_a_start_keeps_a_certificate_that_can_be_used_and_notes_it(home: Path) -> None:
    before = (home / "cs" / "certificate.pem").read_bytes()
    # As an earlier release leaves it.
    (home / "tls" / "issued.json").unlink()
    assert make_certificates(home, ["cs"]) == ()
    assert (home / "cs" / "certificate.pem").read_bytes() == before
    (noted,) = SiteRoot.load(home).issued.of("cs")
    assert noted.key == key_fingerprint(certificates_in(before)[0]).hex()
    # A root that takes over signs all of them anew.
    new = make_root("campus")
    write(new, certificate_file=home / "tls" / "root.pem", key_file=home / "tls" / "root.key")
    make_certificates(home, ["cs"])
    assert (home / "cs" / "certificate.pem").read_bytes() != before


def test_a_list_of_revoked_certificates_is_signed_again_without_an_argument(home: Path, capsys: Capture) -> None:
    assert run("revoke", "cs", state=home.parent) == 0
    first = SiteRoot.load(home).revocations
    assert run("revoke", state=home.parent) == 0
    again = SiteRoot.load(home).revocations
    assert again.number > first.number
    assert again.serials == first.serials
    assert os.fspath(home) in capsys.readouterr().out


def test_signing_overwrites_no_file_that_was_not_named(home: Path, tmp_path: Path, capsys: Capture) -> None:
    before = (home / "tls" / "root.pem").read_bytes()
    os.chdir(home / "tls")
    assert run("request", "root", "--federation", "campus", "--out", "r.csr", state=tmp_path / "second") == 0
    assert run("sign", "r.csr", state=home.parent) == 1
    assert "root.pem exists already: `--out FILE` says where" in capsys.readouterr().err
    assert (home / "tls" / "root.pem").read_bytes() == before
    assert SiteRoot.load(home).issued.of("root") == ()
    assert run("sign", "r.csr", "--out", "other.pem", state=home.parent) == 0


def test_a_certificate_of_an_earlier_release_is_revoked_with_its_name_after_a_start_renewed_it(home: Path) -> None:
    root, key = SiteRoot.load(home), (home / "cs" / "key.pem").read_bytes()
    _, request = make_request(federation="campus", name="cs", key=key)
    due = root.sign(request, "cs", lifetime=timedelta(hours=2))
    (home / "cs" / "certificate.pem").write_bytes(due)
    (home / "tls" / "issued.json").unlink()
    assert make_certificates(home, ["cs"]) == ()
    now = (home / "cs" / "certificate.pem").read_bytes()
    assert now != due
    assert run("revoke", "cs", state=home.parent) == 0
    assert all(root.revocations.holds_any(each) for each in (due, now))


def test_a_certificate_that_is_not_noted_is_revoked_by_its_file(home: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("request", "xinu", "--federation", "campus", state=tmp_path / "second") == 0
    assert run("sign", "xinu.csr", state=home.parent) == 0
    (home / "tls" / "issued.json").unlink()
    assert run("revoke", "xinu", state=home.parent) == 1
    assert "one that is not noted here is revoked by its file" in capsys.readouterr().err
    assert run("revoke", "xinu.pem", state=home.parent) == 0
    root = SiteRoot.load(home)
    assert root.revocations.holds_any(Path("xinu.pem").read_bytes())
    assert run("sign", "xinu.csr", "--out", "again.pem", state=home.parent) == 1


def test_who_revokes_one_certificate_learns_that_the_module_has_another(home: Path, capsys: Capture) -> None:
    Path("old.pem").write_bytes((home / "cs" / "certificate.pem").read_bytes())
    assert run("renew", "cs", state=home.parent) == 0
    assert run("revoke", "old.pem", state=home.parent) == 0
    assert "`cs` has another certificate, which is valid" in capsys.readouterr().out


def test_a_file_with_two_certificates_is_not_taken_for_that_of_one_module(home: Path, capsys: Capture) -> None:
    content = (home / "cs" / "certificate.pem").read_bytes()
    Path("both.pem").write_bytes(content + make_root("campus").certificate)
    assert run("revoke", "both.pem", state=home.parent) == 1
    assert "this is not exactly one certificate in PEM" in capsys.readouterr().err


def test_no_key_is_made_for_a_name_whose_key_is_on_another_host(home: Path, tmp_path: Path) -> None:
    assert run("request", "xinu", "--federation", "campus", state=tmp_path / "second") == 0
    assert run("sign", "xinu.csr", state=home.parent) == 0
    with pytest.raises(ClientError, match="`xinu` has its key on another host, where it is to run"):
        make_certificates(home, ["cs", "xinu"])
    assert not (home / "xinu").exists()
    # It moves here with a new key.
    assert run("request", "xinu", "--out", "new.csr", state=home.parent) == 0
    target = str(home / "xinu" / "certificate.pem")
    assert run("sign", "new.csr", "--new-key", "--out", target, state=home.parent) == 0
    assert make_certificates(home, ["cs", "xinu"]) == ()
    assert SiteRoot.load(home).issued.elsewhere == ()


def test_documents_say_what_was_written_for_whom_and_what_is_revoked(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    def document(*words: str, state: Path) -> dict[str, Any]:
        assert run(*words, "--json", state=state) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    second = tmp_path / "second"
    asked = document("request", "xinu", "--federation", "campus", state=second)
    key = str(second / "campus" / "xinu" / "key.pem")
    assert asked == {
        "schema": 1,
        "federation": "campus",
        "name": "xinu",
        "file": "xinu.csr",
        "key": key,
        "new_key": True,
    }
    again = document("request", "xinu", "--federation", "campus", state=second)
    assert not again["new_key"]
    signed = document("sign", "xinu.csr", "--days", "10", state=home.parent)
    (noted,) = SiteRoot.load(home).issued.of("xinu")
    assert (signed["file"], signed["name"], signed["serial"]) == ("xinu.pem", "xinu", noted.serial)
    assert (signed["fingerprint"], signed["valid_until"]) == (noted.fingerprint, noted.ends_at.isoformat())
    assert document("sign", "xinu.csr", "--out", "other.pem", state=home.parent)["serial"] != noted.serial
    revoked = document("revoke", "xinu.pem", state=home.parent)
    (entry,) = revoked["revoked"]
    assert (entry["name"], entry["serial"], revoked["still_valid"]) == ("xinu", noted.serial, ["xinu"])
    assert (revoked["serials"], Path(revoked["file"]).name) == ([noted.serial], "revoked.pem")


def test_who_looks_for_certificates_of_the_host_is_told_whose_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MESSIAHS_STATE", raising=False)
    (tmp_path / "host" / "shared").mkdir(parents=True)
    (tmp_path / "host" / "shared" / "physics.sock").touch()
    monkeypatch.setattr("messiahs.client.locating._OF_HOST", (tmp_path / "host",))
    assert main(["certificate", "show"]) == 1
    assert "the certificates of physics, modules of this host, are for root" in capsys.readouterr().err
    assert main(["certificate", "show", "--state", str(tmp_path / "home")]) == 1
    assert "there are no certificates under" in capsys.readouterr().err
