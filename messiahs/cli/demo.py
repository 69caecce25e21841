"""`messiahs demo`: a whole campus on this machine, a real job on it, and every result checked."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click

from messiahs.cli.demonstration import Checked, checked_files, compress_everywhere, library, library_files
from messiahs.cli.examples import example
from messiahs.cli.output import print_document, print_table
from messiahs.cli.telling import shown_telling
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.errors import ClientError

TOPOLOGY, MODULE = "campus.yaml", "blays"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UP_SECONDS = 60
_LOOK_SECONDS = 0.02
_SHOWN_PROBLEMS = 10
_LONGEST_PLACE = 40
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the demo comes down to."""

    files: tuple[Checked, ...]
    seconds: float

    @property
    def machines(self) -> dict[str, list[Checked]]:
        """Give who worked on what, the busiest first."""
        found: dict[str, list[Checked]] = {}
        for file in self.files:
            found.setdefault(file.machine or "nobody", []).append(file)
        return dict(sorted(found.items(), key=lambda each: (-len(each[1]), each[0])))

    @property
    def problems(self) -> tuple[str, ...]:
        """Give what is wrong, file by file."""
        return tuple(f"{file.name}: {file.problem}" for file in self.files if file.problem)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--keep", is_flag=True, help="Leave the modules' state and the outputs behind, and say where.")
def demo(*, as_json: bool, keep: bool) -> int:
    """Run a campus of modules here, and let them compress Python's standard library.

    One task for each file is submitted at one laboratory; what comes back is checked against the file. Nothing is
    left running, and without --keep nothing is left at all.
    """
    topology = example("topologies", TOPOLOGY)
    with _interruptible(), _own_folder(keep=keep) as folder:
        with _federation(topology, folder / "state"):
            totals = _work(folder)
        if as_json:
            print_document(_document(totals, folder if keep else None))
        else:
            _print(totals, folder if keep else None)
    return 1 if totals.problems else 0


def _work(folder: Path) -> Totals:
    root = library()
    names = library_files(root)
    place = locate_module(MODULE, state=folder / "state")
    with shown_telling() as tell, ModuleClient(place.socket) as module:
        begun_at = time.monotonic()
        members = compress_everywhere(module, root, names=names, tell=tell)
        seconds = time.monotonic() - begun_at
        files = []
        for file in checked_files(place.socket, members, root=root, names=names, into=folder / "outputs"):
            files.append(file)
            tell("fetched and checked", len(files), len(names))
    return Totals(files=tuple(files), seconds=seconds)


@contextmanager
def _federation(topology: Path, state: Path) -> Iterator[None]:
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


def _command(word: str, topology: Path, state: Path, *more: str) -> Sequence[str]:
    return (sys.executable, "-m", "messiahs.cli.main", word, str(topology), "--state", str(state), *more)


@contextmanager
def _own_folder(*, keep: bool) -> Iterator[Path]:
    # The path of a socket is short by force.
    base = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="messiahs-demo-", dir=base if len(base) <= _LONGEST_PLACE else "/tmp"))  # noqa: S108 - made for us alone
    try:
        yield folder
    finally:
        if not keep:
            with _undisturbed():
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _interruptible() -> Iterator[None]:
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


def _document(totals: Totals, kept: Path | None) -> dict[str, object]:
    return {
        "tasks": len(totals.files),
        "machines": {machine: len(files) for machine, files in totals.machines.items()},
        "seconds": round(totals.seconds, 3),
        "bytes_in": sum(file.bytes_in for file in totals.files),
        "bytes_out": sum(file.bytes_out for file in totals.files),
        "problems": list(totals.problems),
        "kept": None if kept is None else str(kept),
    }


def _print(totals: Totals, kept: Path | None) -> None:
    rows = [
        (machine, len(files), _megabytes(sum(file.bytes_in for file in files)), _megabytes(_out(files)))
        for machine, files in totals.machines.items()
    ]
    print_table(("MACHINE", "TASKS", "IN", "OUT"), rows)
    for problem in totals.problems[:_SHOWN_PROBLEMS]:
        click.echo(f"messiahs: {problem}", err=True)
    bytes_in = _megabytes(sum(file.bytes_in for file in totals.files))
    verdict = f"{len(totals.problems)} came back wrong" if totals.problems else "every file came back right"
    click.echo(
        f"{len(totals.files)} tasks on {len(totals.machines)} machines in {totals.seconds:.1f} s: "
        f"{bytes_in} in, {_megabytes(_out(totals.files))} out; {verdict}"
    )
    if kept is not None:
        click.echo(f"kept in {kept}")


def _out(files: Sequence[Checked]) -> int:
    return sum(file.bytes_out for file in files)


def _megabytes(count: int) -> str:
    return f"{count / _MEGABYTE:.1f} MB"
