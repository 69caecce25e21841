"""Bytes through a pipe to a task of `messiahs run`, on the own machine and at a neighbor."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.federations import EXECUTOR, LONE, ORIGIN, PAIR, Measurable, up
from tests.benchmarks.measuring import OURS, Contender, Entrant, Reading, Row, Sizes

_COUNT = "wc -c; sleep 0.5"
"""`run` still has its memory when the number arrives."""


def rows() -> tuple[Row, ...]:
    """Return the row about standard input."""
    return (
        Row(
            name="pipe",
            what="bytes of a pipe through `messiahs run` into `wc -c`: on the own machine, and at a neighbor",
            enter=_piped,
        ),
    )


@contextmanager
def _piped(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as here, up(PAIR) as pair:
        yield (
            Contender(name=OURS, measure=lambda: _readings(here, sizes), processes=here.processes),
            Contender(name="at a neighbor", measure=lambda: _readings(pair, sizes), processes=pair.processes),
        )


def _readings(measurable: Measurable, sizes: Sizes) -> list[Reading]:
    return [reading for size_bytes in sizes.piped_bytes for reading in _piped_through(measurable, size_bytes)]


def _piped_through(measurable: Measurable, size_bytes: int) -> Iterator[Reading]:
    size, pipe = f"{size_bytes / 1e6:g} MB", subprocess.PIPE
    command = [sys.executable, "-m", "messiahs.cli.main", "run", "--", "sh", "-c", _COUNT]
    begun_at = time.monotonic()
    with (
        subprocess.Popen(["head", "-c", str(size_bytes), "/dev/zero"], stdout=pipe) as producer,
        subprocess.Popen(command, stdin=producer.stdout, stdout=pipe, env=measurable.federation.environment) as run,
    ):
        assert producer.stdout is not None
        assert run.stdout is not None
        producer.stdout.close()
        counted = run.stdout.readline()
        seconds = time.monotonic() - begun_at
        used_bytes = _most_bytes(run.pid)
    assert (run.returncode, int(counted)) == (0, size_bytes)
    yield Reading(size, "MB/s", size_bytes / 1e6 / seconds)
    yield Reading(f"{size}: memory of `run`, most", "MB", used_bytes / 1e6)
    for module in (ORIGIN, EXECUTOR):
        if (pid := measurable.processes.get(f"daemon of {module}")) is not None:
            yield Reading(f"{size}: memory of the daemon of {module}, most so far", "MB", _most_bytes(pid) / 1e6)


def _most_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
