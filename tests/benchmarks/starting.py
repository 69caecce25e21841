"""How long a command takes to start, do next to nothing, and end."""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.federations import LONE, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes

VERSION, SUBMIT = "messiahs version", "messiahs submit"


def rows() -> tuple[Row, ...]:
    """Return the rows about the start of commands; both with compiled modules and a warm cache."""
    return (
        Row(
            name="start",
            what="a command that needs no module, from start to end",
            budgets=(Budget(figure=VERSION, at_least=30, aim=25),),
            enter=_without_module,
        ),
        Row(
            name="start-submit",
            what="a command that submits one task, from start to end",
            budgets=(Budget(figure=SUBMIT, at_least=80, aim=60),),
            enter=_with_module,
        ),
    )


@contextmanager
def _without_module(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    yield (
        _contender(OURS, VERSION, [*_program(), "version"], starts=sizes.starts),
        _contender("python -c pass", VERSION, [sys.executable, "-c", "pass"], starts=sizes.starts),
    )


@contextmanager
def _with_module(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        command = [*_program(), "submit", "--quiet", "--", "true"]
        environment = measurable.federation.environment
        yield (_contender(OURS, SUBMIT, command, starts=sizes.starts, environment=environment),)


def _program() -> list[str]:
    """Return the installed program next to this interpreter, as users start it."""
    beside = shutil.which("messiahs", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-m", "messiahs.cli.main"]


def _contender(
    name: str, figure: str, command: Sequence[str], *, starts: int, environment: Mapping[str, str] = os.environ
) -> Contender:
    # In a checkout, compiled modules may be disabled; for users they are not.
    compiling = {variable: value for variable, value in environment.items() if variable != "PYTHONDONTWRITEBYTECODE"}

    def start(**more: str) -> str:
        done = subprocess.run(command, env={**compiling, **more}, check=True, capture_output=True, text=True)
        return done.stderr

    def measure() -> list[Reading]:
        took, used = zip(*(_took_ms(start) for _ in range(starts)), strict=True)
        return [
            Reading(figure, "ms", statistics.median(took)),
            Reading(f"{figure}: processor time", "ms", statistics.median(used)),
        ]

    start()
    return Contender(
        name=name,
        measure=measure,
        imports=lambda: start(PYTHONPROFILEIMPORTTIME="1"),
    )


def _took_ms(start: Callable[[], object]) -> tuple[float, float]:
    """Return the elapsed and the processor time."""
    begun_at, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    start()
    took_seconds, after = time.monotonic() - begun_at, resource.getrusage(resource.RUSAGE_CHILDREN)
    used_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * took_seconds, 1000 * used_seconds
