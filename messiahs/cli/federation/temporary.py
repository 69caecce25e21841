"""A federation for the duration of one command: started in a folder of its own, and always ended."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from messiahs.errors import ClientError, MessiahsError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UP_SECONDS = 60
_POLL_SECONDS = 0.02
_LONGEST_PLACE = 40


@contextmanager
def federation(topology: Path, state: Path) -> Iterator[None]:
    """Start a federation, and end it when the block ends, also by an exception."""
    command = _command("up", topology, state, "--detach", "--wait", str(_UP_SECONDS))
    sys.stderr.write(f"starting every module of {topology.stem}\n")
    # In a session of its own it does not get Ctrl-C from the terminal while it starts others.
    log_file = state.with_name("up.log")
    with log_file.open("wb") as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        if up.wait():
            raise ClientError(f"{topology.stem} did not start: {log_file.read_text(errors='replace').strip()}")
        yield
    finally:
        with _undisturbed():
            _take_down(up, topology, state)


def _take_down(up: "subprocess.Popen[bytes]", topology: Path, state: Path) -> None:
    # `down` ends recorded processes, so wait for a supervisor that is just starting.
    while up.poll() is None and not any(state.glob("*/supervisor.pid")):
        time.sleep(_POLL_SECONDS)
    up.kill()
    up.wait()
    down = subprocess.run(_command("down", topology, state), capture_output=True, check=False, start_new_session=True)
    if down.returncode:
        raise ClientError(f"{topology.stem} did not end: {down.stderr.decode(errors='replace').strip()}")


def remove_tasks(state: Path) -> None:
    """Remove folders of tasks outside of the state directory, which the tasks' account cannot enter."""
    from messiahs.config.settings import load_settings
    from messiahs.executor.protocol.layout import (
        FALLBACK,
        prepare_attempts_root,
        prepare_files_root,
        task_account,
    )

    for file in state.glob("*/*/settings.json"):
        with suppress(MessiahsError, OSError):
            settings = load_settings(file)
            account = task_account(settings.task_uids)
            for place in (prepare_attempts_root, prepare_files_root):
                shutil.rmtree(place(settings.directory, account, fallback=FALLBACK), ignore_errors=True)


def _command(word: str, topology: Path, state: Path, *more: str) -> Sequence[str]:
    # -P: nothing is imported from the folder in which the demo is called.
    return (sys.executable, "-P", "-m", "messiahs.cli.main", word, str(topology), "--state", str(state), *more)


@contextmanager
def own_folder(*, keep: bool) -> Iterator[Path]:
    """Create a folder and yield it; it is removed with its contents unless `keep` is set."""
    # The path of a Unix socket must be short.
    base = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="messiahs-demo-", dir=base if len(base) <= _LONGEST_PLACE else "/tmp"))  # noqa: S108 - private to this user
    try:
        yield folder
    finally:
        if not keep:
            with _undisturbed():
                remove_tasks(folder / "state")
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle every terminating signal like Ctrl-C, so that the federation is always ended."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled_by(interrupt):
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    with _handled_by(signal.SIG_IGN):
        yield


@contextmanager
def _handled_by(handler: "signal._HANDLER") -> Iterator[None]:
    # Signals ignored by the parent (`nohup`) stay ignored.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
