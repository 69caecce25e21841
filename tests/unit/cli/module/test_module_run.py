"""`module run` and `up` with mistakes: each prints one message, exits with 1, and starts nothing."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from messiahs.channel.certificates.tls import make_root
from messiahs.cli.federation.certificates import make_certificates, tls_paths
from messiahs.cli.federation.deployment import federation_directory, refuse_taken
from messiahs.cli.main import main
from messiahs.cli.module.own_account import warning_of
from messiahs.config.settings import MachineSettings, ModuleSettings
from messiahs.config.topology.reading import load_topology
from messiahs.daemon.process.pid_files import record_this_process, recorded_process
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import ClientError, UnusableStateError
from tests.contract.authorities import Authority, naming
from tests.ports import free_port

PATIENCE_SECONDS = 30


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port with a listener."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """Return two systems, the parent of which is at another site."""
    file = tmp_path / "t.yaml"
    write(file, "{host: 127.0.0.1, port: 1, parent: far}")
    return file


def write(file: Path, a: str) -> None:
    far = "  far: {external: true, host: far.invalid, port: 7101, trust: far.pem}\n" if "far" in a else ""
    file.write_text(f"version: 1\nfederation: f\nsystems:\n  a: {a}\n{far}")


def run(file: Path, state: Path, *, name: str = "a", code: int = 1) -> subprocess.CompletedProcess[str]:
    """Run a module that is expected to end by itself, with an exit code."""
    command = [sys.executable, "-m", "messiahs.cli.main", "module", "run", name]
    options = ["--topology", str(file), "--state", str(state)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=file.parent
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code
    assert not [pid for pid in state.glob("f/*/*.pid") if recorded_process(pid)] if state.is_dir() else True
    return done


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\n", "t.yaml:2:1: "),
        ("\0", "t.yaml:1:1: "),
        ("version: 1\nfederation: f\nsystems: {a: {parent: x}}\n", "t.yaml:3:23: there is no system `x`"),
        (
            "version: 1\nfederation: f\nsystems: {a: {parent: b}, b: {parent: a}}\n",
            "t.yaml:3:11: a system cannot be above itself: a -> b -> a",
        ),
        (
            "version: 1\nfederation: f\nsystems: {a: {parents: [b, c]}, b: {}, c: {}}\n",
            "t.yaml:3:11: `a` has 2 parents: add `primary: `",
        ),
        (
            "version: 1\nfederation: f\nsystems: {a: {host: h, port: 1}, b: {host: h, port: 1}}\n",
            "t.yaml:3:53: h:1 is the address of `a` already",
        ),
    ],
)
@pytest.mark.parametrize("command", [("module", "run", "a", "--topology"), ("up",), ("down",)])
def test_an_invalid_topology_is_reported_with_its_position(
    tmp_path: Path, text: str, expected: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(text)
    assert main([*command, str(file), "--state", str(tmp_path / "s")]) == 1
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


@pytest.mark.processes
def test_a_port_in_use_is_named(tmp_path: Path, topology: Path, taken: int) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {taken}}}")
    assert f"port {taken} is in use by another process" in run(topology, tmp_path / "s").stderr


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1:7101", "192.0.2.1 is not an address of this host"),
        ("no-such-host.invalid:7101", "cannot listen on no-such"),
    ],
)
def test_an_address_of_another_host_is_named(address: str, expected: str) -> None:
    with pytest.raises(ClientError, match=expected):
        refuse_taken(address)


def test_a_running_module_is_not_started_again(
    tmp_path: Path, topology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = federation_directory(tmp_path, "f") / "a"
    folder.mkdir()
    record_this_process(folder / "daemon.pid")
    assert main(["module", "run", "a", "--topology", str(topology), "--state", str(tmp_path)]) == 1
    assert f"`a` is already running (process {os.getpid()})" in capsys.readouterr().err
    assert not (folder / "key.pem").exists()


@pytest.mark.processes
def test_a_missing_root_of_another_site_is_reported_with_the_own_root_to_exchange(
    tmp_path: Path, topology: Path
) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {free_port()}, parent: far}}")
    printed = run(topology, tmp_path / "s").stderr
    assert f"`a` is linked with `far`: the trust file {tmp_path / 'far.pem'} cannot be read: No such file" in printed
    own = tmp_path / "s" / "f" / "tls" / "root.pem"
    assert f"the root to give to `far` is {own}" in printed
    assert b"BEGIN CERTIFICATE" in own.read_bytes()


@pytest.mark.processes
def test_a_missing_root_of_a_site_that_is_introduced_is_reported_with_the_own_root_to_exchange(tmp_path: Path) -> None:
    topology = tmp_path / "introducing.yaml"
    topology.write_text(
        "version: 1\nfederation: f\nintroductions: [{file: they.pem, names: [they]}]\n"
        f"systems: {{a: {{host: 127.0.0.1, port: {free_port()}}}}}\n"
    )
    printed = run(topology, tmp_path / "s").stderr
    own = tmp_path / "s" / "f" / "tls" / "root.pem"
    assert f"`a` has another site introduced to it: the trust file {tmp_path / 'they.pem'} cannot be read" in printed
    assert f"the root to give to that site is {own}" in printed


@pytest.mark.processes
def test_a_root_of_another_site_that_is_the_own_one_is_refused_by_the_start_and_by_the_check(
    tmp_path: Path, topology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {free_port()}, parent: far}}")
    (tmp_path / "far.pem").write_bytes(make_root("f").certificate)
    check = ["topology", "check", str(topology), "--state", str(tmp_path / "s")]
    assert main(check) == 0
    assert capsys.readouterr().err == ""
    directory = federation_directory(tmp_path / "s", "f")
    (directory / "a").mkdir()
    make_certificates(directory, ["a"])
    own = directory / "tls" / "root.pem"
    assert main(check) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "far.pem").write_bytes(own.read_bytes())
    problem = (
        f"{tmp_path / 'far.pem'} is a copy of the root of this site, {own}: "
        "replace it with the root.pem of the other site"
    )
    assert f"`a` is linked with `far`: {problem}" in run(topology, tmp_path / "s").stderr
    assert main(check) == 1
    checked = capsys.readouterr()
    assert f"`trust:` of `far`: {problem}" in checked.err
    assert checked.out == ""
    assert main([*check, "--json"]) == 1
    document = {"schema": 1, "problems": [f"`trust:` of `far`: {problem}"], "warnings": []}
    assert json.loads(capsys.readouterr().out) == document
    # The root of the other site in the same file is enough.
    (tmp_path / "far.pem").write_bytes(own.read_bytes() + make_root("f").certificate)
    assert main(check) == 0
    assert capsys.readouterr().err == ""
    # A site that trusts both roots everywhere, as before links had roots of their own, still starts.
    (tmp_path / "far.pem").write_bytes(make_root("f").certificate)
    own.write_bytes(own.read_bytes() + (tmp_path / "far.pem").read_bytes())
    assert main(check) == 0
    assert capsys.readouterr().err == ""
    own.write_text("garbage")
    assert main(check) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("uid", "machine", "is_warned"),
    [
        (1, MachineSettings(), True),
        (4_000_000_000, MachineSettings(), True),
        (0, MachineSettings(), False),
        (1, None, False),
        (1, MachineSettings(isolation="bubblewrap"), False),
    ],
)
def test_an_administrator_without_root_is_warned_of_what_tasks_can_do(
    *, uid: int, machine: MachineSettings | None, is_warned: bool
) -> None:
    settings = ModuleSettings(
        federation="f",
        name="a",
        state_directory=Path("/s"),
        listen="127.0.0.1:1",
        certificate_file=Path("/c"),
        key_file=Path("/k"),
        trust_file=Path("/t"),
        machine=machine,
    )
    warning = warning_of(settings, uid)
    assert ("`a` runs tasks as" in warning) is is_warned
    assert ("keys and database" in warning) is is_warned


@pytest.mark.processes
def test_an_external_system_is_not_run(tmp_path: Path, topology: Path) -> None:
    assert "`far` is external" in run(topology, tmp_path / "s", name="far").stderr


@pytest.mark.processes
def test_a_state_directory_that_is_a_file_is_named(tmp_path: Path, topology: Path) -> None:
    (tmp_path / "s").write_text("")
    assert (
        f"the state directory {tmp_path / 's' / 'f'} cannot be made: Not a directory"
        in run(topology, tmp_path / "s").stderr
    )


@pytest.mark.processes
def test_a_state_that_cannot_be_written_is_named(tmp_path: Path, topology: Path) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {free_port()}}}")
    (tmp_path / "s" / "f").mkdir(parents=True)
    (tmp_path / "s" / "f" / "tls").write_text("")
    printed = run(topology, tmp_path / "s").stderr
    assert f"the state in {tmp_path / 's' / 'f'} cannot be written: {tmp_path / 's' / 'f' / 'tls'}: " in printed


@pytest.mark.processes
def test_a_socket_path_that_is_too_long_is_reported(tmp_path: Path, topology: Path) -> None:
    printed = run(topology, tmp_path / ("long" * 30)).stderr
    assert "a Unix socket can have 107: choose a shorter state directory" in printed


@pytest.mark.processes
def test_a_state_of_a_later_release_is_reported(tmp_path: Path, topology: Path) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {free_port()}}}")
    folder = federation_directory(tmp_path / "s", "f") / "a"
    folder.mkdir()
    RowStore(folder / "module.db").close()
    with sqlite3.connect(folder / "module.db") as database:
        database.execute("INSERT INTO rows VALUES (1, x'00', x'7f')")
    database.close()
    assert "a newer release wrote this state" in run(topology, tmp_path / "s", code=UnusableStateError.EXIT_CODE).stderr


@pytest.mark.processes
@pytest.mark.parametrize("content", ["", "garbage", '{"schema": 99}'])
def test_unreadable_settings_are_written_again(tmp_path: Path, topology: Path, taken: int, content: str) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {taken}}}")
    folder = federation_directory(tmp_path / "s", "f") / "a"
    folder.mkdir()
    (folder / "settings.json").write_text(content)
    (folder / "daemon.pid").write_text(content)
    assert f"port {taken} is in use" in run(topology, tmp_path / "s").stderr


def test_a_module_keeps_its_key_unless_that_is_damaged(tmp_path: Path) -> None:
    directory = federation_directory(tmp_path, "f")
    paths = tls_paths(directory, "a")
    for content, is_kept in ((None, False), ("", True), ("garbage", False)):
        if content:
            paths.key_file.write_text(content)
        before = paths.key_file.read_bytes() if paths.key_file.exists() else b""
        make_certificates(directory, ["a"])
        assert (paths.key_file.read_bytes() == before) == is_kept
        key = load_pem_private_key(paths.key_file.read_bytes(), password=None)
        certificate = load_pem_x509_certificate(paths.certificate_file.read_bytes())
        assert key.public_key() == certificate.public_key()


@pytest.mark.processes
def test_a_certificate_that_has_expired_is_refused_without_the_key_of_the_root_and_else_renewed(
    tmp_path: Path, topology: Path
) -> None:
    write(topology, f"{{host: 127.0.0.1, port: {free_port()}, parent: far}}")
    directory = federation_directory(tmp_path / "s", "f")
    (directory / "a").mkdir()
    make_certificates(directory, ["a"])
    paths = tls_paths(directory, "a")
    paths.certificate_file.write_bytes(Authority("ours").sign(naming("a", federation="f", days=(-2, -1))).certificate)
    root_key = directory / "tls" / "root.key"
    kept = root_key.rename(tmp_path / "root.key")
    printed = run(topology, tmp_path / "s").stderr
    assert f"`a` cannot run: the certificate {paths.certificate_file} is not for the key in {paths.key_file}" in printed
    expired = Authority("ours").sign(naming("a", federation="f", days=(-2, -1)), key=paths.key_file.read_bytes())
    paths.certificate_file.write_bytes(expired.certificate)
    printed = run(topology, tmp_path / "s").stderr
    problem = f"the certificate of this module, {paths.certificate_file}, expired at "
    assert f"`a` cannot run: {problem}" in printed
    assert f"there is no {root_key} here, so: `messiahs certificate renew` renews it where tls/root.key lies" in printed
    paths.certificate_file.unlink()
    assert f"`a` cannot run: {paths.certificate_file} is missing" in run(topology, tmp_path / "s").stderr
    paths.certificate_file.write_bytes(expired.certificate)
    kept.rename(root_key)
    # It ends later, because the root of the other site is missing.
    assert f"messiahs: warning: {problem}" in run(topology, tmp_path / "s").stderr
    assert "warning: the certificate" not in run(topology, tmp_path / "s").stderr


def test_a_damaged_root_is_named(tmp_path: Path) -> None:
    directory = federation_directory(tmp_path, "f")
    (directory / "a").mkdir()
    make_certificates(directory, ["a"])
    (directory / "tls" / "root.key").write_text("garbage")
    with pytest.raises(ClientError, match=r"root\.pem and .*root\.key contain no root"):
        make_certificates(directory, ["a"])


@pytest.mark.processes
def test_up_leaves_external_systems_out_and_says_so(
    tmp_path: Path, topology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_topology(topology).externals
    try:
        assert main(["up", str(topology), "--state", str(tmp_path / "s"), "--detach"]) == 0
        assert "messiahs: external systems are left out: far" in capsys.readouterr().err
    finally:
        assert main(["down", str(topology), "--state", str(tmp_path / "s")]) == 0


def test_up_of_external_systems_alone_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nfederation: f\nsystems: {far: {external: true}}\n")
    assert main(["up", str(file), "--state", str(tmp_path / "s")]) == 1
    assert "every system is external (far)" in capsys.readouterr().err
