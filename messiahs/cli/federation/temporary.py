"""A federation for the length of one command: brought up in a folder of its own, and taken down whatever happens."""

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
_LOOK_SECONDS = 0.02
_LONGEST_PLACE = 40
_ELSEWHERE = Path("/var/tmp")  # noqa: S108 - where executors put what cannot lie in the state directory


@contextmanager
def federation(topology: Path, state: Path) -> Iterator[None]:
    """Bring a federation up, and take it down whatever happens."""
    command = _command("up", topology, state, "--detach", "--wait", str(_UP_SECONDS))
    sys.stderr.write(f"starting every module of {topology.stem}\n")
    # In a session of its own, Ctrl-C at the terminal does not end it in the middle of starting others.
    told = state.with_name("up.log")
    with told.open("wb") as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        if up.wait():
            raise ClientError(f"{topology.stem} did not come up: {told.read_text(errors='replace').strip()}")
        yield
    finally:
        with _undisturbed():
            _take_down(up, topology, state)


def _take_down(up: "subprocess.Popen[bytes]", topology: Path, state: Path) -> None:
    # `down` ends what is recorded, so a supervisor that is only just being started must be waited for.
    while up.poll() is None and not any(state.glob("*/supervisor.pid")):
        time.sleep(_LOOK_SECONDS)
    up.kill()
    up.wait()
    down = subprocess.run(_command("down", topology, state), capture_output=True, check=False, start_new_session=True)
    if down.returncode:
        raise ClientError(f"{topology.stem} did not go down: {down.stderr.decode(errors='replace').strip()}")


def remove_tasks(state: Path) -> None:
    """Remove the folders of tasks that lie elsewhere, because their account cannot get into ours."""
    from messiahs.config.settings import load_settings
    from messiahs.executor.protocol.layout import prepare_attempts_root, prepare_files_root, task_account

    for file in state.glob("*/*/settings.json"):
        with suppress(MessiahsError, OSError):
            settings = load_settings(file)
            account = task_account(settings.task_user)
            for place in (prepare_attempts_root, prepare_files_root):
                shutil.rmtree(place(settings.directory, account, fallback=_ELSEWHERE), ignore_errors=True)


def _command(word: str, topology: Path, state: Path, *more: str) -> Sequence[str]:
    return (sys.executable, "-m", "messiahs.cli.main", word, str(topology), "--state", str(state), *more)


@contextmanager
def own_folder(*, keep: bool) -> Iterator[Path]:
    """Give a folder of one's own, which goes with all that is in it unless it is to be kept."""
    # The path of a socket is short by force.
    base = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="messiahs-demo-", dir=base if len(base) <= _LONGEST_PLACE else "/tmp"))  # noqa: S108 - made for us alone
    try:
        yield folder
    finally:
        if not keep:
            with _undisturbed():
                remove_tasks(folder / "state")
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let every signal that asks for the end do what Ctrl-C does, so that everything is taken down."""

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
    # What is ignored by those who started us (`nohup`) stays so.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
