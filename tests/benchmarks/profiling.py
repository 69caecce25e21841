"""Profile of a row: py-spy samples the processes while they are measured."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from tests.benchmarks.measuring import Contender

TOP = 15
_RATE_PER_SECOND = 100
_WAITING = (
    "Condition.wait (threading.py)",
    "EpollSelector.select (selectors.py)",
    "Popen._try_wait (subprocess.py)",
    "Thread.run (threading.py)",
    "_worker (concurrent/futures/thread.py)",
)
"""The top frames of threads that wait in a C call, which py-spy counts as work."""
_STOPPING_SECONDS = 60.0


def py_spy() -> str | None:
    """Find py-spy, next to this interpreter or on the PATH."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


@contextmanager
def profiled(contender: Contender, *, row: str, into: Path, console: Console) -> Iterator[None]:
    """Record the stacks of a contender's processes in files, and print the most frequent top functions."""
    program = py_spy()
    assert program is not None, "who profiles has asked for py-spy before"
    into.mkdir(parents=True, exist_ok=True)
    paths = {name: into / f"{row}-{name.replace(' ', '-')}.txt" for name in contender.processes}
    recorders = {name: _recorder(program, contender.processes[name], path) for name, path in paths.items()}
    try:
        yield
        if contender.imports is not None:
            console.print(f"{row}: imports by own time, in us")
            _print_counts(import_time(contender.imports()), console)
    finally:
        for name, recorder in recorders.items():
            recorder.send_signal(signal.SIGINT)
            _, trouble = recorder.communicate(timeout=_STOPPING_SECONDS)
            _print_top(name, paths[name], trouble, console)


def _recorder(program: str, pid: int, path: Path) -> "subprocess.Popen[str]":
    path.unlink(missing_ok=True)
    command = [program, "record", "--pid", str(pid), "--format", "raw", "--output", str(path), "--nonblocking"]
    return subprocess.Popen(
        [*command, "--rate", str(_RATE_PER_SECOND), "--duration", "unlimited"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _print_top(name: str, path: Path, trouble: str, console: Console) -> None:
    if not path.exists():
        console.print(f"{name}: no profile: {' '.join(trouble.split())}", markup=False)
        return
    own = own_time(path.read_text())
    busy_seconds = own.total() / _RATE_PER_SECOND
    console.print(f"{name}: busy for {busy_seconds:.1f} s, samples by own time ({path})", markup=False)
    _print_counts(own, console)


def _print_counts(counts: Counter[str], console: Console) -> None:
    total = max(1, counts.total())
    for name, count in counts.most_common(TOP):
        console.print(f"  {count:8}  {100 * count / total:5.1f} %  {name}", markup=False, highlight=False)


def own_time(collapsed: str) -> Counter[str]:
    """Count samples by the function that was on top, unless it waited; a line is `outer;inner;innermost COUNT`."""
    own: Counter[str] = Counter()
    for line in collapsed.splitlines():
        stack, _, count = line.rpartition(" ")
        # Lines of one function are one.
        own[_function(stack.rpartition(";")[2])] += int(count)
    for waiting in _WAITING:
        del own[waiting]
    return own


def import_time(said: str) -> Counter[str]:
    """Return the microseconds of each import without those that it made, from `import time: OWN | ALL | NAME`."""
    lines = (line.removeprefix("import time:").split("|") for line in said.splitlines() if line.count("|") == 2)
    return Counter({name.strip(): int(own) for own, _, name in lines if own.strip().isdecimal()})


def _function(frame: str) -> str:
    """Give `name (file)` of `name (file:line)`."""
    place, colon, _ = frame.rpartition(":")
    return f"{place})" if colon else frame
