"""What one large file needs at least: the pipe of openssl, and the shortest of Python that also hashes and stores."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from messiahs.channel.certificates.tls import make_root, write
from tests.benchmarks.measuring import Contender, Entrant, Reading, Skipped
from tests.benchmarks.plain_pipe import CERTIFICATE, COPY, HASHED, KEY
from tests.waiting import eventually

SENDING, RECEIVING = "processor of who sends", "processor of who receives"
WRITING = "of these, in `write`"
_OPENSSL, _PYTHON = "openssl s_client | s_server", "Python: TLS, SHA-256, file"


def pipes(folder: Path, fresh_file: Callable[[], Path], *, figures: Sequence[str]) -> tuple[Entrant, ...]:
    """Return both pipes, which send a new file for the figures; for the last one, who sends hashes as well."""

    def measured(figures_of: Callable[[Path], list[Reading]]) -> list[Reading]:
        write(make_root("pipe"), certificate_file=folder / CERTIFICATE, key_file=folder / KEY)
        path = fresh_file()
        try:
            return figures_of(path)
        finally:
            path.unlink()

    python = Contender(name=_PYTHON, measure=lambda: measured(lambda path: _of_python(folder, path, figures)))
    program = shutil.which("openssl")
    if program is None:
        return (Skipped(name=_OPENSSL, reason="openssl is not installed: package openssl"), python)
    openssl = Contender(
        name=_OPENSSL, measure=lambda: measured(lambda path: _of_openssl(program, folder, path, figures))
    )
    return (openssl, python)


def _of_python(folder: Path, path: Path, figures: Sequence[str]) -> list[Reading]:
    """Send a file between two processes for each figure: stored, hashed and synced by the one that receives it."""
    readings: list[Reading] = []
    size_bytes = path.stat().st_size
    for figure in figures:
        hashed = [HASHED] if figure == figures[-1] else []
        with _plain_pipe("receive", str(folder), str(size_bytes)) as receiver:
            port = _line(receiver)
            with _plain_pipe("send", port, str(path), *hashed) as sender:
                sent, received = json.loads(_line(sender)), json.loads(_line(receiver))
        _check_copy(folder, size_bytes)
        readings += _readings(figure, size_bytes, sent["took"], sent=sent["used"], received=received["used"])
        of_these = f"{figure}: {RECEIVING}, {WRITING}"
        readings.append(Reading(of_these, "s/GB", received["writing"] / (size_bytes / 1e9)))
    return readings


def _plain_pipe(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.benchmarks.plain_pipe", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None, "it is a pipe"
    return process.stdout.readline().strip()


def _of_openssl(program: str, folder: Path, path: Path, figures: Sequence[str]) -> list[Reading]:
    """Send a file through `openssl s_client` and `s_server`: encrypted, neither hashed nor synced."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with_key = ("-cert", str(folder / CERTIFICATE), "-key", str(folder / KEY))
    listen = (program, "s_server", "-accept", f"127.0.0.1:{port}", *with_key, "-naccept", "1", "-quiet")
    send = (program, "s_client", "-connect", f"127.0.0.1:{port}", "-nocommands", "-quiet", "-no_ign_eof")
    with (folder / COPY).open("wb") as copy:
        receiver = subprocess.Popen(listen, stdin=subprocess.PIPE, stdout=copy, stderr=subprocess.DEVNULL)
        eventually(lambda: _is_listening(port))
        begun_at = time.monotonic()
        with path.open("rb") as source:
            sender = subprocess.Popen(send, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sent, received = (_cpu_of_ended(process) for process in (sender, receiver))
        took_seconds = time.monotonic() - begun_at
    size_bytes = path.stat().st_size
    _check_copy(folder, size_bytes)
    return [
        reading
        for figure in figures
        for reading in _readings(figure, size_bytes, took_seconds, sent=sent, received=received)
    ]


def _readings(figure: str, size_bytes: int, took_seconds: float, *, sent: float, received: float) -> list[Reading]:
    return [
        Reading(figure, "MB/s", size_bytes / 1e6 / took_seconds),
        Reading(f"{figure}: {SENDING}", "s/GB", sent / (size_bytes / 1e9)),
        Reading(f"{figure}: {RECEIVING}", "s/GB", received / (size_bytes / 1e9)),
    ]


def _check_copy(folder: Path, size_bytes: int) -> None:
    arrived = (folder / COPY).stat().st_size
    (folder / COPY).unlink()
    if arrived != size_bytes:
        raise RuntimeError(f"the pipe moved {arrived} of {size_bytes} bytes")


def _is_listening(port: int) -> bool:
    # Not by connecting, because the receiver takes one connection.
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


def _cpu_of_ended(process: "subprocess.Popen[bytes]") -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdin is not None:
        process.stdin.close()
    return usage.ru_utime + usage.ru_stime
