"""Tasks with an environment of 300 MB, which is there already, beside the same tasks without."""

import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from messiahs.client import ModuleClient
from messiahs.client.preparing import prepared_submission
from messiahs.client.task_options import TaskOptions
from tests.benchmarks.federations import SANDBOXED, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped

MORE: Final = "median of the difference"
_CACHE = "XDG_CACHE_HOME"
_SMALL_PART = 10
"""So much smaller is the environment of tiny sizes."""
_FILES, _FILE_BYTES = 3_000, 100_000


def rows() -> tuple[Row, ...]:
    """Return the row about environments."""
    return (
        Row(
            name="environment",
            what="a no-op task with a virtual environment of 300 MB in 3,000 files that the machine has, and without",
            budgets=(Budget(figure=MORE, at_least=100, aim=50),),
            enter=_equipped,
        ),
    )


@contextmanager
def _equipped(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    if os.geteuid() != 0:
        yield (Skipped(name=OURS, reason="sandboxes of the own make need root"),)
        return
    with up(SANDBOXED) as measurable:
        venv = measurable.folder / "venv"
        _fill(venv, files=_FILES if sizes.latency_tasks > _SMALL_PART else _FILES // _SMALL_PART)
        before = os.environ.get(_CACHE)
        os.environ[_CACHE] = str(measurable.folder / "cache")

        def measure() -> list[Reading]:
            with measurable.client() as client:
                # It is packed, sent and unpacked by then.
                _one(client, venv)
                pairs = [(_one(client, venv), _one(client, None)) for _ in range(sizes.latency_tasks)]
            return [
                Reading(MORE, "ms", statistics.median(equipped - plain for equipped, plain in pairs)),
                Reading("median", "ms", statistics.median(equipped for equipped, _ in pairs)),
                Reading("median without", "ms", statistics.median(plain for _, plain in pairs)),
            ]

        try:
            yield (Contender(name=OURS, measure=measure, processes=measurable.processes),)
        finally:
            os.environ.pop(_CACHE)
            if before is not None:
                os.environ[_CACHE] = before


def _one(client: ModuleClient, venv: Path | None) -> float:
    """Return the milliseconds from the submit of a task, with a look at every file of its environment, to its end."""
    begun_at = time.monotonic()
    options: TaskOptions = {} if venv is None else {"venv": venv}
    document = client.wait(client.submit(prepared_submission(client, ["true"], options=options)))
    took = time.monotonic() - begun_at
    if document["exit_code"] != 0:
        raise RuntimeError(f"the task did not finish: {document}")
    return 1000 * took


def _fill(venv: Path, *, files: int) -> None:
    """Make what looks like a virtual environment of the system's Python, half of which cannot be compressed."""
    draw = random.Random(1)
    name = next(Path("/usr/bin").glob("python3.[0-9]*[0-9]")).name
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(f"/usr/bin/{name}")
    (venv / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {name.removeprefix('python')}.0\n")
    for number in range(files):
        folder = venv / "lib" / f"package{number // 30}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"part{number}.so").write_bytes(draw.randbytes(_FILE_BYTES // 2) + bytes(_FILE_BYTES // 2))
