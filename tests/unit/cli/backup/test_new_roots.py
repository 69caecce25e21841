"""A backup of before the site got a new root: `tls/` stays, and so do certificates that the site accepts."""

import json
import shutil
from pathlib import Path

import pytest

from messiahs.channel.certificates.own_certificate import READMITTANCE
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import KeyAndCertificate, make_root
from messiahs.cli.backup.making import make
from messiahs.cli.backup.present_certificates import pair_note
from messiahs.cli.backup.restoring import restore
from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.cli.main import main
from messiahs.client.locating import known_modules
from messiahs.config.topology.reading import load_topology
from messiahs.errors import ClientError

_TOPOLOGY = "version: 1\nfederation: pair\nsystems:\n  left: {}\n  right: {parent: left}\n"
_BEFORE = b"stored before"


def site_in(state: Path) -> Path:
    """Make the federation of two modules that do not run, with a root of its own, and return its folder."""
    topology = state.parent / "pair.yaml"
    topology.write_text(_TOPOLOGY)
    directory = federation_directory(state, "pair")
    prepare(load_topology(topology), directory)
    (directory / "left" / "border.key").write_bytes(_BEFORE)
    return directory


@pytest.fixture
def state(short_folder: Path) -> Path:
    return short_folder / "s"


@pytest.fixture
def directory(state: Path) -> Path:
    return site_in(state)


@pytest.fixture
def file(directory: Path, state: Path, short_folder: Path) -> Path:
    """Make a backup of both, and change what is stored afterwards."""
    SiteRoot.load(directory).revoke()
    out = short_folder / "backup"
    make(known_modules(state), out)
    (directory / "left" / "border.key").write_bytes(b"stored later")
    return out


def get_new_root(
    directory: Path, *, keeps_old: bool = False, renewed: tuple[str, ...] = ("left",)
) -> KeyAndCertificate:
    """Give the site another root, as docs/administrators.md says, let modules be renewed, and return the root."""
    root, tls = make_root("pair"), directory / "tls"
    old = (tls / "root.pem").read_bytes()
    (tls / "root.key").write_bytes(root.key)
    (tls / "root.pem").write_bytes(old + root.certificate)
    make_certificates(directory, renewed)
    SiteRoot.load(directory).revoke()
    if not keeps_old:
        (tls / "root.pem").write_bytes(root.certificate)
    return root


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("keeps_old", [True, False])
def test_a_module_is_restored_beside_a_new_root_and_keeps_its_new_certificate(
    directory: Path, state: Path, file: Path, *, keeps_old: bool
) -> None:
    get_new_root(directory, keeps_old=keeps_old)
    tls, certificate = files_in(directory / "tls"), (directory / "left" / "certificate.pem").read_bytes()
    done = restore(file, state, replaces=True, module="left")
    assert files_in(directory / "tls") == tls
    assert (directory / "left" / "border.key").read_bytes() == _BEFORE
    assert (directory / "left" / "certificate.pem").read_bytes() == certificate
    assert done.notes[0] == "`left` keeps its certificate.pem, which the site accepts, instead of what the backup has"
    stay = [note for note in done.notes if note.endswith("is another file than in the backup, and stays as it is")]
    assert [note.split()[0] for note in stay] == [
        str(directory / "tls" / name) for name in ("issued.json", "revoked.pem", "root.key", "root.pem")
    ]
    assert len(done.notes) == 5
    assert make_certificates(directory, ["left"]) == ()
    assert (directory / "left" / "certificate.pem").read_bytes() == certificate


def test_a_module_that_got_a_new_key_since_keeps_it(directory: Path, state: Path, file: Path) -> None:
    SiteRoot.load(directory).revoke(names=frozenset({"left"}))
    for name in ("key.pem", "certificate.pem"):
        (directory / "left" / name).unlink()
    make_certificates(directory, ["left"])
    pair = [(directory / "left" / name).read_bytes() for name in ("certificate.pem", "key.pem")]
    done = restore(file, state, replaces=True, module="left")
    assert [(directory / "left" / name).read_bytes() for name in ("certificate.pem", "key.pem")] == pair
    assert (directory / "left" / "key.pem").stat().st_mode & 0o777 == 0o600
    text = "`left` keeps its certificate.pem and key.pem, which the site accepts, instead of what the backup has"
    assert done.notes[0] == text


def test_a_module_that_was_lost_is_known_by_the_record_of_the_root_and_is_told_to_renew(
    directory: Path, state: Path, file: Path
) -> None:
    get_new_root(directory)
    before = (directory / "left" / "certificate.pem").read_bytes()
    shutil.rmtree(directory / "left")
    *_, note = restore(file, state, replaces=False, module="left").notes
    certificate = directory / "left" / "certificate.pem"
    assert certificate.read_bytes() != before
    assert note == (
        f"`left` has no certificate that the site accepts: no root in {directory}/tls/root.pem has signed "
        f"{certificate}; `messiahs certificate renew left` makes another one, as `up` and `module run` do"
    )
    assert main(["certificate", "renew", "left", "--state", str(state)]) == 0
    renewed = certificate.read_bytes()
    assert make_certificates(directory, ["left"]) == ()
    assert certificate.read_bytes() == renewed


def test_on_a_host_without_the_key_of_the_root_a_module_is_known_by_its_key_and_told_to_request(
    directory: Path, state: Path, file: Path
) -> None:
    get_new_root(directory, renewed=())
    for name in ("root.key", "issued.json", "revoked.pem"):
        (directory / "tls" / name).unlink()
    before = files_in(directory / "tls")
    notes = restore(file, state, replaces=True, module="left").notes
    left = directory / "left"
    assert notes[-1] == (
        f"`left` has no certificate that the site accepts: no root in {directory}/tls/root.pem has signed "
        f"{left}/certificate.pem; `messiahs certificate request left` here, `messiahs certificate sign left.csr` where "
        f"tls/root.key lies, and copy the certificate to {left}/certificate.pem before you start it"
    )
    # Modules would not start with them.
    for name in ("root.key", "revoked.pem"):
        text = f"tls/{name} of the backup is left out: it belongs to no root in {directory}/tls/root.pem"
        assert text in notes
    restored = files_in(directory / "tls")
    assert {name: restored[name] for name in before} == before
    assert {*restored} - {*before} == {"issued.json"}


def test_where_nothing_shows_that_a_backup_is_of_this_site_it_is_refused_unless_the_administrator_says_so(
    directory: Path, state: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = get_new_root(directory)
    for name in ("left", "right"):
        shutil.rmtree(directory / name)
    for name in ("root.key", "revoked.pem"):
        (directory / "tls" / name).unlink()
    # A damaged record shows nothing.
    (directory / "tls" / "issued.json").write_text("{")
    before = files_in(state)
    command = ["restore", str(file), "--state", str(state)]
    assert main(command) == 1
    assert capsys.readouterr().err == (
        f"messiahs: {directory}/tls/root.pem is another root than that of the backup, and nothing shows that both are "
        f"of one site: no module of the backup is in {directory} with its key, or in tls/issued.json. If the backup is "
        f"of this site, from before it got a new root, add `--same-site`, which keeps the files in {directory}/tls; "
        "if it is of another site, restore it into another state directory (`--state`); nothing was changed\n"
    )
    assert files_in(state) == before
    assert main([*command, "--same-site", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [note.split()[0] for note in notes if "has no certificate that the site accepts" in note] == [
        "`left`", "`right`",
    ]  # fmt: skip
    assert (directory / "tls" / "root.pem").read_bytes() == root.certificate
    assert not (directory / "tls" / "root.key").exists()
    assert (directory / "left" / "border.key").read_bytes() == _BEFORE


def test_a_backup_of_another_site_with_modules_of_the_same_names_is_refused(file: Path, short_folder: Path) -> None:
    (short_folder / "o").mkdir()
    other = site_in(short_folder / "o" / "s")
    before = files_in(other)
    with pytest.raises(ClientError, match="another root"):
        restore(file, short_folder / "o" / "s", replaces=True)
    assert files_in(other) == before


def test_where_the_old_root_comes_back_its_certificates_do_too(directory: Path, state: Path, file: Path) -> None:
    get_new_root(directory)
    (directory / "tls").rename(state / "away")
    assert restore(file, state, replaces=True, module="left").notes == ()
    assert list(pair_note(directory / "left", directory / "tls")) == []


def test_a_certificate_that_was_revoked_since_does_not_stay_and_is_not_passed_over(
    directory: Path, state: Path, file: Path
) -> None:
    SiteRoot.load(directory).revoke(names=frozenset({"left"}))
    *_, note = restore(file, state, replaces=True, module="left").notes
    assert note == f"the certificate of `left` was revoked; {READMITTANCE}"


def test_a_host_of_the_root_that_was_lost_needs_all_files_of_the_new_root_together(
    directory: Path, state: Path, file: Path, short_folder: Path
) -> None:
    get_new_root(directory)
    new = shutil.copytree(directory / "tls", short_folder / "new")
    shutil.rmtree(state)
    assert restore(file, state, replaces=False).notes == ()
    shutil.copy(new / "root.pem", directory / "tls" / "root.pem")
    with pytest.raises(ClientError) as error:
        make_certificates(directory, ["left"])
    assert str(error.value) == (
        f"{directory}/tls/root.pem and root.key contain no root: the key belongs to none of the certificates; they "
        "belong together: bring root.pem, root.key, issued.json and, if there is one, revoked.pem to "
        f"{directory}/tls from where the present root lies; a host that signs no certificates has root.pem without "
        "root.key"
    )
    shutil.copytree(new, directory / "tls", dirs_exist_ok=True)
    make_certificates(directory, ["left"])
    assert SiteRoot.load(directory).is_revoked((directory / "left" / "certificate.pem").read_bytes()) is False


def test_a_host_that_was_lost_gets_the_new_root_first_and_nothing_of_the_old_one(
    directory: Path, state: Path, file: Path, short_folder: Path
) -> None:
    get_new_root(directory)
    there = short_folder / "other"
    right = federation_directory(there, "pair") / "right"
    tls = right.parent / "tls"
    tls.mkdir(mode=0o700)
    for name in ("root.pem", "revoked.pem"):
        shutil.copy(directory / "tls" / name, tls / name)
    *_, note = restore(file, there, replaces=False, module="right", is_same_site=True).notes
    assert "`messiahs certificate request right` here" in note
    assert not (tls / "root.key").exists()
    request, signed = short_folder / "right.csr", short_folder / "right.pem"
    command = ["certificate", "request", "right", "--federation", "pair", "--state", str(there), "--out", str(request)]
    assert main(command) == 0
    assert main(["certificate", "sign", str(request), "--state", str(state), "--out", str(signed)]) == 0
    shutil.copy(signed, right / "certificate.pem")
    assert list(pair_note(right, tls)) == []
    assert make_certificates(right.parent, ["right"]) == ()


def test_a_host_of_the_root_that_was_lost_gets_all_files_of_the_new_root_first(
    directory: Path, file: Path, short_folder: Path
) -> None:
    get_new_root(directory)
    there = short_folder / "other"
    left = federation_directory(there, "pair") / "left"
    tls = left.parent / "tls"
    shutil.copytree(directory / "tls", tls)
    *_, note = restore(file, there, replaces=False, module="left").notes
    assert "`messiahs certificate renew left` makes another one, as `up` and `module run` do" in note
    make_certificates(left.parent, ["left"])
    assert list(pair_note(left, tls)) == []
