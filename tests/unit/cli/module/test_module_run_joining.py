"""`module run --join` with mistakes: each is told before anything is asked, and nothing starts."""

import base64
import json
import re
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import issue, make_root
from messiahs.channel.membership.tokens import JoinToken
from messiahs.cli.exit_codes import USAGE
from messiahs.cli.federation.newcomer import Newcomer, Report, joined_settings
from messiahs.cli.main import main
from messiahs.config.settings import ModuleSettings, NeighborSettings, save_settings
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.errors import ClientError, MessiahsError
from tests.ports import free_port

ROOT = make_root("campus")
CS = SystemId("cs")


def token(*, roots: bytes = ROOT.certificate) -> JoinToken:
    """Return a token of a module that does not run."""
    made = issue(ROOT, federation="campus", name="token")
    return JoinToken(
        address=f"127.0.0.1:{free_port()}",
        federation="campus",
        parent=CS,
        parent_key=bytes(16),
        roots=roots,
        certificate=made.certificate,
        key=made.key,
    )


def join(folder: Path, newcomer: Newcomer, *, report: Report = lambda _: None) -> Path:
    """Join below a state directory."""
    directory = folder / "campus"
    directory.mkdir(exist_ok=True, mode=0o700)
    return joined_settings(newcomer, token(), directory=directory, report=report)


def stored(folder: Path, *, parent: str) -> Path:
    """Store the settings of a module that has joined a parent."""
    directory = folder / "campus"
    neighbor = NeighborSettings(
        neighbor=Neighbor(system=SystemId(parent), is_parent=True, is_primary_parent=True), address="127.0.0.1:1"
    )
    settings = ModuleSettings(
        federation="campus",
        name="xinu",
        state_directory=directory,
        listen="",
        certificate_file=directory / "xinu" / "certificate.pem",
        key_file=directory / "xinu" / "key.pem",
        trust_file=directory / "tls" / "root.pem",
        neighbors=(neighbor,),
    )
    directory.mkdir(mode=0o700)
    save_settings(settings, directory / "xinu" / "settings.json")
    return directory / "xinu" / "settings.json"


def test_a_module_that_has_joined_the_parent_of_the_token_asks_nobody(tmp_path: Path) -> None:
    file, told = stored(tmp_path, parent="cs"), list[str]()
    assert join(tmp_path, Newcomer(name="xinu"), report=told.append) == file
    (line,) = told
    assert line.startswith("`xinu` has joined `cs` before, and runs as it ran last; if it has left since")
    assert line.endswith("--token FILE --module xinu`")


def test_a_module_of_another_parent_is_not_joined_anew(tmp_path: Path) -> None:
    stored(tmp_path, parent="ee")
    with pytest.raises(ClientError, match="`xinu` has settings already, with `ee`: run it without --join"):
        join(tmp_path, Newcomer(name="xinu"))


def test_a_state_of_another_site_is_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "campus" / "tls" / "root.pem"
    own.parent.mkdir(parents=True, mode=0o700)
    own.write_bytes(make_root("campus").certificate)
    before = own.read_bytes()
    with pytest.raises(ClientError, match="is the root of another site than that of `cs`"):
        join(tmp_path, Newcomer(name="xinu"))
    assert own.read_bytes() == before


@pytest.mark.parametrize("name", ["../tls", "Xinu", "7", "tls", "a.sock", ""])
def test_a_name_that_no_system_has_makes_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClientError, match="cannot be the name of a system") as refused:
        join(tmp_path, Newcomer(name=name))
    assert refused.value.code == USAGE
    assert not list((tmp_path / "campus").iterdir())


@pytest.mark.parametrize(
    ("newcomer", "problem"),
    [
        (Newcomer(name="xinu", machine={"slots": "many"}), "slots: `many` is not an integer"),
        (Newcomer(name="xinu", machine={"avail_mem": "1GiB"}), "can be set with `probe: fixed` only"),
        (Newcomer(name="xinu", machine={"counted.licences": "many"}), "licences: `many` is neither a count up to"),
        (Newcomer(name="xinu", machine={"gpus": "many"}), "gpus: `many` is neither a count up to"),
        (Newcomer(name="xinu", machine={"at_most.mem": "8"}), "mem: `8` is not a size: it needs a unit"),
        (Newcomer(name="xinu", machine={"at_most.memory": "8GiB"}), "unknown key `memory`"),
        (Newcomer(name="xinu", machine={"most.mem": "8GiB"}), "unknown key `most`"),
        (Newcomer(name="xinu", listen="127.0.0.1:99999"), "port"),
        (Newcomer(name="xinu", policy_file=Path("/no/such.policy")), "/no/such.policy"),
    ],
    ids=[
        "no number of slots",
        "a measured attribute",
        "no count of licences",
        "no count of GPUs",
        "no size",
        "no maximum",
        "no mapping",
        "no port",
        "no policy",
    ],
)
def test_what_a_topology_would_not_take_is_refused(tmp_path: Path, newcomer: Newcomer, problem: str) -> None:
    with pytest.raises(ClientError, match=problem) as refused:
        join(tmp_path, newcomer)
    assert refused.value.code == USAGE
    # Nobody has written a file with lines.
    assert re.match(r"the command line: [^:\d]", str(refused.value))


def test_the_address_of_the_parent_is_not_taken_for_the_own_one(tmp_path: Path) -> None:
    parent = token()
    with pytest.raises(ClientError, match=f"{parent.address} is the address of `cs` already"):
        joined_settings(Newcomer(name="xinu", listen=parent.address), parent, directory=tmp_path, report=lambda _: None)


@pytest.mark.parametrize("address", ["localhost", ":7101", "localhost:http"])
def test_an_address_without_host_or_port_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ClientError, match=r"is not HOST:PORT"):
        join(tmp_path, Newcomer(name="xinu", listen=address))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("Kid_1", "--join", "cs:7101"), "`Kid_1` cannot be the name of a system: a name is small letters, digits"),
        (("xinu", "--join", "cs"), "`cs` is not HOST:PORT, such as cs.example:7101"),
        (("xinu", "--join", "cs:http"), "`cs:http` is not HOST:PORT"),
        (("xinu", "--join", "cs:7101", "--listen", "xinu"), "`xinu` is not HOST:PORT"),
        (("xinu", "--join", "cs:7101", "--machine", "slots=zwei"), "slots: `zwei` is not an integer"),
    ],
    ids=["no name", "no port", "a word as port", "no port to listen at", "no number of slots"],
)
def test_a_value_that_cannot_be_meant_is_a_mistake_of_usage(
    tmp_path: Path, words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(token().to_text())
    more = ("--token", str(tmp_path / "token"), "--state", str(tmp_path / "state"))
    assert main(["module", "run", *words, *more]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--join", "cs:7101"),
        ("--token", "token"),
        ("--join", "cs:7101", "--token", "token", "--topology", "campus.yaml"),
        ("--machine", "slots=2"),
        ("--listen", "xinu:7101"),
        ("--join", "cs:7101", "--token", "token", "--machine", "slots"),
        ("--join", "cs:7101", "--token", "token", "--machine", "slot=2"),
    ],
)
def test_options_that_do_not_belong_together_are_a_mistake_of_usage(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text(token().to_text())
    assert main(["module", "run", "xinu", *words, "--state", str(tmp_path / "state")]) == 2
    assert "Error" in capsys.readouterr().err


def test_a_mistyped_key_of_a_machine_is_refused_with_the_one_that_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(token().to_text())
    words = ("--join", "cs:7101", "--token", str(tmp_path / "token"), "--machine", "gpus=1,slot=2")
    assert main(["module", "run", "xinu", *words, "--state", str(tmp_path / "state")]) == 2
    said = capsys.readouterr().err
    assert "--machine has no key `slot`: is `slots` meant? The keys are " in said


def test_a_module_that_never_ran_needs_a_file_or_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "run", "xinu", "--state", str(tmp_path)]) == 1
    assert "name its file with --topology, or join with --join" in capsys.readouterr().err


def _spoiled(**changes: object) -> bytes:
    written = json.loads(base64.urlsafe_b64decode(token().to_text()))
    return base64.urlsafe_b64encode(json.dumps({**written, **changes}).encode())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "it is no token"),
        (b"\xff\xfe", "it is no token"),
        (token().to_text().encode()[:-40], "it is no token"),
        (_spoiled(v=2), "a token of version 2, and this release knows version 1"),
        (_spoiled(role="parent"), "this release knows no role 'parent'"),
        (_spoiled(parent="../cs"), "it names no module"),
        (_spoiled(parent=".."), "it names no module"),
        (_spoiled(parent="tls"), "it names no module"),
        (_spoiled(federation=".."), "it names no module"),
        (_spoiled(federation="a.b"), "it names no module"),
        (_spoiled(address="nowhere"), "it has no address"),
        (_spoiled(parent_key="00"), "it does not say how its module is recognized"),
        (_spoiled(roots=""), "it does not say how its module is recognized"),
        (_spoiled(certificate=""), "it has no certificate"),
        (_spoiled(key=5), "it is no token"),
    ],
)
def test_a_text_that_is_no_token_is_refused_with_the_reason(text: bytes, problem: str) -> None:
    with pytest.raises(MessiahsError, match=problem):
        JoinToken.from_text(text)
