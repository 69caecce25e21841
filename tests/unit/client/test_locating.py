"""Finding the right module and its socket."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import messiahs
from messiahs.client.locating import locate_module, member_of, module_of, state_directory
from messiahs.errors import ClientError

NOTHING: dict[str, str] = {}


def known(state: Path, *names: str, federation: str = "f") -> None:
    for name in names:
        (state / federation / name).mkdir(parents=True)
        (state / federation / name / "settings.json").touch()


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({"MESSIAHS_STATE": "/m", "XDG_STATE_HOME": "/x"}, Path("/m")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/messiahs")),
        ({"XDG_STATE_HOME": "relative"}, Path.home() / ".local/state/messiahs"),
        ({}, Path.home() / ".local/state/messiahs"),
    ],
)
def test_the_state_directory_follows_the_environment(environment: dict[str, str], directory: Path) -> None:
    assert state_directory(environment=environment) == directory


def test_the_option_comes_before_the_environment() -> None:
    assert state_directory(Path("/o"), environment={"MESSIAHS_STATE": "/m"}) == Path("/o")


@pytest.mark.parametrize(
    ("task", "module"),
    [
        ("blays.17", "blays"),
        ("blays.17.3", "blays"),
        ("cs.purdue.4", "cs.purdue"),
        ("cs.17.3#2", "cs"),
        ("blays", "blays"),
    ],
)
def test_a_task_names_its_module(task: str, module: str) -> None:
    assert module_of(task) == module


@pytest.mark.parametrize("name", [None, "p1"])
def test_where_no_module_has_run_both_ways_to_start_one_are_named(name: str | None, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"`messiahs up TOPOLOGY`.* `messiahs module run NAME --topology TOPOLOGY`"):
        locate_module(name, state=tmp_path, environment=NOTHING)


def test_the_only_module_need_not_be_named(tmp_path: Path) -> None:
    known(tmp_path, "left")
    assert locate_module(state=tmp_path, environment=NOTHING).socket == tmp_path / "f" / "left.sock"


def test_of_several_modules_one_must_be_named(tmp_path: Path) -> None:
    known(tmp_path, "left", "right")
    with pytest.raises(ClientError, match=r"which module\? name one of left, right with `--module` or MESSIAHS_MODULE"):
        locate_module(state=tmp_path, environment=NOTHING)
    assert locate_module("right", state=tmp_path, environment=NOTHING).module == "right"
    assert locate_module(state=tmp_path, environment={"MESSIAHS_MODULE": "right"}).module == "right"


def test_in_python_a_module_is_named_by_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    known(tmp_path, "left", "right")
    text = r"which module\? name one of left, right with `module=` or MESSIAHS_MODULE"
    with messiahs.connect(state=tmp_path) as client, pytest.raises(ClientError, match=text):
        client.submit(["true"])
    with messiahs.connect("rihgt", tmp_path / "none") as client, pytest.raises(ClientError) as caught:
        client.submit(["true"])
    assert "--" not in str(caught.value).replace("messiahs module run NAME --topology", "")


def test_of_several_modules_the_only_one_that_runs_is_meant(tmp_path: Path) -> None:
    known(tmp_path, "left", "right")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "f" / "right.sock"))
        listener.listen()
        assert locate_module(state=tmp_path, environment=NOTHING).module == "right"


def test_a_task_finds_its_module_whatever_the_environment_says(tmp_path: Path) -> None:
    known(tmp_path, "left", "right")
    assert locate_module(task="right.3", state=tmp_path, environment={"MESSIAHS_MODULE": "left"}).module == "right"


def test_a_name_in_two_federations_must_be_said_with_its_federation(tmp_path: Path) -> None:
    known(tmp_path, "left", federation="f")
    known(tmp_path, "left", federation="g")
    named = locate_module(task="left.1", state=tmp_path, environment={"MESSIAHS_MODULE": "g/left"})
    assert named.federation == "g"
    with pytest.raises(ClientError, match="in several federations"):
        locate_module(task="left.1", state=tmp_path, environment={"MESSIAHS_MODULE": "right"})
    with pytest.raises(ClientError, match="one of f/left, g/left"):
        locate_module("left", state=tmp_path, environment=NOTHING)
    assert locate_module("g/left", state=tmp_path, environment=NOTHING).federation == "g"


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    known(tmp_path, "left")
    with pytest.raises(ClientError, match=r"no module `rihgt` under .*: there are left"):
        locate_module("rihgt", state=tmp_path, environment=NOTHING)


def test_an_empty_state_directory_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="messiahs up TOPOLOGY"):
        locate_module(state=tmp_path, environment=NOTHING)


def test_a_path_that_is_too_long_for_a_socket_is_refused_in_words(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 107)
    known(deep, "left")
    with pytest.raises(ClientError, match="a Unix socket can have 107"):
        locate_module(state=deep, environment=NOTHING)


@pytest.mark.parametrize(
    ("task", "member"),
    [("left.1", 0), ("left.1.3", 3), ("a.b.1", 0), ("a.b.1.12", 12), ("left.1#4", 0), ("left.1.3#4", 3), ("left", 0)],
)
def test_the_number_of_a_member_is_read_from_its_id(task: str, member: int) -> None:
    assert member_of(task) == member


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--module", "left"), ("backup", "--all", "--out", "b")])
def test_a_command_that_needs_the_folder_of_a_module_says_as_whom_to_run_it(
    tmp_path_factory: pytest.TempPathFactory, words: tuple[str, ...]
) -> None:
    state = tmp_path_factory.mktemp("base") / "s"
    known(state, "left")
    (state / "f" / "left.sock").touch()
    for parent in (state / "f", state, *state.parents):
        if parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(0o755)
    folder = state / "f" / "left"
    folder.chmod(0o700)
    script = (
        "import os, sys; from messiahs.cli import main\n"
        "import messiahs.cli.doctor.commands, messiahs.cli.backup.commands, messiahs.cli.backup.making\n"
        "os.setgid(65534); os.setuid(65534); sys.exit(main.main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", script, *words, "--state", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = f"you have no permission to read {folder}, which has the keys of `left`: run this command as the account"
    assert (done.returncode, done.stderr.startswith(f"messiahs: {text}")) == (1, True), done.stderr


def as_another_account(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Search for modules with the permissions of an account that owns nothing."""
    script = (
        "import os, sys; os.setgid(65534); os.setuid(65534)\n"
        "from pathlib import Path\n"
        "from messiahs.client.locating import locate_module\n"
        "from messiahs.errors import ClientError\n"
        "try: print(locate_module(*sys.argv[2:], state=Path(sys.argv[1]), environment={}).module)\n"
        "except ClientError as error: print(error)\n"
    )
    warm = "import messiahs.client.locating, pwd\n"
    command = [sys.executable, "-c", warm + script, str(state), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
@pytest.mark.parametrize("words", [(), ("blays",)])
@pytest.mark.parametrize("closed", ["state", "state/campus"])
def test_another_account_is_informed_that_it_has_no_permission(
    tmp_path_factory: pytest.TempPathFactory, closed: str, words: tuple[str, ...]
) -> None:
    base = tmp_path_factory.mktemp("base")
    for parent in (base, *base.parents):
        if parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(0o755)
    state = base / "state"
    (state / "campus" / "blays").mkdir(parents=True)
    (state / "campus" / "blays.sock").touch()
    (state / "other").mkdir(mode=0o700)
    (base / closed).chmod(0o700)
    printed = as_another_account(state, *words).stdout
    assert f"you have no permission to read {base / closed}" in printed
    named = f"{state} {state}/FEDERATION" if closed == "state" else f"{state}/campus {state}/other"
    assert f"`chmod o+rx {named}`" in printed
    (state / "other").rmdir()
    (base / closed).chmod(0o755)
    assert as_another_account(state, *words).stdout == "blays\n"


def test_a_name_that_no_own_module_has_is_looked_for_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, host = tmp_path / "home" / "messiahs", tmp_path / "host"
    monkeypatch.setattr("messiahs.client.locating._OF_HOST", (host,))
    known(own, "mine", "both")
    known(host, "physics", "both")
    here = {"XDG_STATE_HOME": str(tmp_path / "home")}
    assert locate_module(environment={**here, "MESSIAHS_MODULE": "physics"}).state_directory == host
    assert locate_module("f/physics", environment=here).state_directory == host
    assert locate_module("both", environment=here).state_directory == own
    with pytest.raises(ClientError, match="there are both, mine; the installation for all users of this host has it"):
        locate_module("physics", environment={"MESSIAHS_STATE": str(own)})


def test_the_module_in_an_id_is_looked_for_on_the_host_and_asked_if_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, host = tmp_path / "home" / "messiahs", tmp_path / "host"
    monkeypatch.setattr("messiahs.client.locating._OF_HOST", (host,))
    known(own, "mine")
    known(host, "physics")
    here = {"XDG_STATE_HOME": str(tmp_path / "home")}
    assert locate_module(task="physics.17", environment=here).module == "mine"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(host / "f" / "physics.sock"))
        listener.listen()
        assert locate_module(task="physics.17", environment=here).state_directory == host
        assert locate_module(task="physics.17", environment={"MESSIAHS_STATE": str(own)}).module == "mine"
        assert locate_module("mine", task="physics.17", environment=here).module == "mine"
