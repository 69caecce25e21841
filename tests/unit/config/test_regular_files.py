"""Files named by users: only regular ones of bounded size are read, and no command waits for other kinds."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.regular_files import NotRegularError, open_regular, read_at_most, read_regular

POLICY = "accept from any { limit 9 tasks; }\n"
_HANG_SECONDS = 60


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Path]:
    """Make a FIFO that is held open for writing, so that a reader waits forever."""
    path = tmp_path / "a.policytest"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    yield path
    os.close(held)


def _messiahs(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "messiahs.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_HANG_SECONDS)


def test_a_regular_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("real")
    assert read_regular(tmp_path / "link", limit_bytes=5) == b"12345"
    assert read_at_most(tmp_path / "link", 3) == b"123"


def test_a_file_that_is_longer_than_allowed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"123456")
    with pytest.raises(NotRegularError, match=r"long: it is longer than 5 bytes"):
        read_regular(tmp_path / "long", limit_bytes=5)


def test_a_file_that_is_not_regular_is_refused_with_its_kind(fifo: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, kind in (
            (fifo, "a pipe"),
            (Path("/dev/zero"), "a device"),
            (tmp_path, "a folder"),
            (tmp_path / "socket", "a socket"),
        ):
            with pytest.raises(NotRegularError) as raised:
                open_regular(path)
            assert raised.value.strerror == f"it is {kind}, not a regular file"


@pytest.mark.processes
def test_a_pipe_that_the_caller_opened_is_read_and_standard_input_is_not(tmp_path: Path) -> None:
    (tmp_path / "good.policy").write_text(POLICY)
    script = f"exec 0<&-; {sys.executable} -m messiahs.cli.main policy check <(cat {tmp_path / 'good.policy'})"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=_HANG_SECONDS)
    assert (done.returncode, "no problems" in done.stdout) == (0, True), done.stderr
    reader, writer = os.pipe()
    try:
        os.write(writer, b"12345")
        with pytest.raises(NotRegularError, match="it is longer than 3 bytes"):
            read_regular(f"/dev/fd/{reader}", limit_bytes=3)
        command = [sys.executable, "-m", "messiahs.cli.main", "policy", "check", "/dev/fd/0"]
        stopped = subprocess.run(
            command, stdin=reader, capture_output=True, text=True, check=False, timeout=_HANG_SECONDS
        )
        assert "it is a pipe, not a regular file" in stopped.stderr
    finally:
        os.close(reader)
        os.close(writer)


def test_a_fifo_is_refused_also_as_an_open_file(fifo: Path) -> None:
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotRegularError):
        read_at_most(f"/dev/fd/{descriptor}", 5)
    os.close(descriptor)


@pytest.mark.processes
@pytest.mark.parametrize(
    "words",
    [
        ("policy", "check", "FIFO"),
        ("policy", "fmt", "FIFO"),
        ("policy", "fmt", "--check", "FIFO"),
        ("policy", "test", "FIFO"),
        ("policy", "explain", "FIFO"),
        ("policy", "explain", "good.policy", "--task", "FIFO"),
        ("policy", "explain", "good.policy", "--pool", "FIFO"),
        ("policy", "diff", "good.policy", "FIFO", "--replay", "good.policy"),
        ("policy", "diff", "good.policy", "good.policy", "--replay", "FIFO"),
        ("policy", "load", "FIFO"),
        ("module", "preview", "x", "--policy", "FIFO"),
        ("module", "run", "x", "--topology", "FIFO", "--state", "state"),
        ("topology", "check", "FIFO"),
        ("topology", "check", "names.yaml"),
        ("topology", "check", "trusts.yaml"),
        ("topology", "show", "FIFO"),
        ("up", "FIFO", "--state", "state"),
        ("up", "names.yaml", "--state", "state"),
        ("sim", "run", "names.yaml"),
        ("trace", "replay", "FIFO"),
        ("submit", "--each-line", "FIFO", "--", "true"),
    ],
    ids=" ".join,
)
def test_no_command_waits_for_a_file_that_is_a_pipe(words: tuple[str, ...], fifo: Path, tmp_path: Path) -> None:
    (tmp_path / "good.policy").write_text(POLICY)
    top = "version: 1\nfederation: f\nsystems:\n  a: {}\n"
    (tmp_path / "names.yaml").write_text(f"{top}  b: {{parent: a, policy: {fifo.name}}}\n")
    (tmp_path / "trusts.yaml").write_text(
        f"{top}  b: {{parent: a, external: true, host: h, port: 1, trust: {fifo.name}}}\n"
    )
    places = {"FIFO": fifo, **{name: tmp_path / name for name in ("good.policy", "names.yaml", "trusts.yaml", "state")}}
    done = _messiahs(*(str(places.get(word, word)) for word in words))
    assert done.returncode in (1, 2)
    assert f"{fifo}" in done.stderr
    assert "it is a pipe, not a regular file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.processes
def test_an_endless_device_is_refused_as_a_policy_and_as_a_topology(tmp_path: Path) -> None:
    for words in (("policy", "check", "/dev/zero"), ("topology", "check", "/dev/zero")):
        done = _messiahs(*words)
        assert done.returncode == 1
        assert "it is a device, not a regular file" in done.stderr
