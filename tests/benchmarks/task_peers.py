"""Other programs that run many commands on one machine, two at a time. None survives a crash as MESSIAHS does."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from tests.benchmarks.federations import SLOTS
from tests.benchmarks.measuring import Contender, Entrant, Reading, Skipped

RATE = "tasks a second"

# The Python client looks for the end of a job once a second: enough tasks make that a small error.
_HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=int(sys.argv[1])))
    client = cluster.client()
    def took(tasks):
        job = Job()
        for _ in range(tasks):
            job.program(["true"], stdout=None, stderr=None)
        begun_at = time.monotonic()
        client.wait_for_jobs([client.submit(job)])
        return time.monotonic() - begun_at
    took(1)
    print("took", took(int(sys.argv[2])), flush=True)
"""


def peers(tasks: int) -> Iterator[Entrant]:
    """Return the installed ones; each runs enough tasks to measure its rate."""
    yield _contender("raw spawn", tasks, _spawn)
    if shutil.which("xargs"):
        yield _contender("xargs -P2", tasks, _xargs)
    else:
        yield Skipped(name="xargs -P2", reason="xargs is not installed (findutils)")
    yield gnu_parallel(max(1, tasks // 5))
    yield hyperqueue(tasks)


def gnu_parallel(tasks: int) -> Entrant:
    """Return GNU parallel, if installed."""
    if not shutil.which("parallel"):
        return Skipped(name="GNU parallel", reason="not installed: the package `parallel` of most distributions")
    version = subprocess.run(["parallel", "--version"], capture_output=True, text=True, check=False).stdout
    if not version.startswith("GNU parallel"):
        return Skipped(name="GNU parallel", reason="the `parallel` here is another program of that name")
    return _contender("GNU parallel", tasks, _gnu_parallel)


def hyperqueue(tasks: int) -> Entrant:
    """Return HyperQueue's server and worker from its wheel, if installed."""
    if find_spec("hyperqueue") is None:
        return Skipped(name="HyperQueue", reason="not installed: pip install '.[benchmarks]'")
    return _contender("HyperQueue", tasks, _hyperqueue)


def _contender(name: str, tasks: int, took: Callable[[int], float]) -> Contender:
    return Contender(name=name, measure=lambda: [Reading(RATE, "/s", tasks / took(tasks))])


def _spawn(tasks: int) -> float:
    program = shutil.which("true") or "true"
    begun_at = time.monotonic()
    running: set[int] = set()
    for _ in range(tasks):
        if len(running) == SLOTS:
            running.discard(os.wait()[0])
        running.add(os.posix_spawn(program, ["true"], {}))
    for pid in running:
        os.waitpid(pid, 0)
    return time.monotonic() - begun_at


def _xargs(tasks: int) -> float:
    return _fed(["xargs", f"-P{SLOTS}", "-n1", "true"], tasks)


def _gnu_parallel(tasks: int) -> float:
    return _fed(["parallel", "--will-cite", f"-j{SLOTS}", "true"], tasks)


def _fed(command: list[str], tasks: int) -> float:
    lines = "".join(f"{number}\n" for number in range(tasks))
    begun_at = time.monotonic()
    subprocess.run(command, input=lines, text=True, check=True, capture_output=True)
    return time.monotonic() - begun_at


def _hyperqueue(tasks: int) -> float:
    command = [sys.executable, "-c", _HYPERQUEUE, str(SLOTS), str(tasks)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(next(line for line in done.stdout.splitlines() if line.startswith("took")).split()[1])
