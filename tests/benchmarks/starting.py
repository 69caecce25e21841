"""How long a command takes to start, do next to nothing, and end."""

import os
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
    """Give the rows about the start of commands; both with compiled modules and a warm cache."""
    return (
        Row(
            name="start",
            what="a command that needs no module, from start to end",
            budgets=(Budget(figure=VERSION, at_least=80, aim=45),),
            enter=_without_module,
        ),
        Row(
            name="start-submit",
            what="a command that submits one task, from start to end",
            budgets=(Budget(figure=SUBMIT, at_least=200, aim=100),),
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
    """Give the installed program beside this interpreter: what a user types starts that."""
    beside = shutil.which("messiahs", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-m", "messiahs.cli.main"]


def _contender(
    name: str, figure: str, command: Sequence[str], *, starts: int, environment: Mapping[str, str] = os.environ
) -> Contender:
    # A checkout may be told not to write compiled modules; users are not.
    compiling = {variable: value for variable, value in environment.items() if variable != "PYTHONDONTWRITEBYTECODE"}

    def start() -> None:
        subprocess.run(command, env=compiling, check=True, capture_output=True)

    start()
    return Contender(
        name=name,
        measure=lambda: [Reading(figure, "ms", statistics.median(_took_ms(start) for _ in range(starts)))],
    )


def _took_ms(start: Callable[[], None]) -> float:
    begun_at = time.monotonic()
    start()
    return 1000 * (time.monotonic() - begun_at)
