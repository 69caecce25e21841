"""Run a swarm on all processors, and print its results."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from messiahs.cli.output import print_text
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.sim.swarm import Failure, Run, run_seed


@contextmanager
def outcomes(seeds: Sequence[int]) -> Iterator[Iterator[Run]]:
    """Yield an iterator over the result of each seed, in order, as they become available; several run at a time."""
    processes = min(len(seeds), len(os.sched_getaffinity(0)))
    if processes == 1:
        yield map(run_seed, seeds)
        return
    # No threads run here, and a forked process has all imports already.
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork"))
    try:
        yield pool.map(run_seed, seeds)
    finally:
        pool.shutdown(cancel_futures=True)


def print_run(run: Run, *, number: int, of: int) -> None:
    """Print one line for a finished run, and everything that is known about its failure."""
    what = f"{run.systems} systems, {sum(run.faults.values())} faults, {_counted(run.tasks) or 'no tasks'}"
    print_text(f"[{number}/{of}] seed {run.seed}: {what}, {run.virtual_ns / SECOND:,.0f} virtual s")
    if run.failure is not None:
        _print_failure(run.failure)


def print_summary(runs: Sequence[Run]) -> None:
    """Print the totals of all runs."""
    failed = sum(run.failure is not None for run in runs)
    faults = sum((run.faults for run in runs), Counter[str]())
    print_text(f"{len(runs) - failed} of {len(runs)} runs are clean: {_counted(_tasks(runs)) or 'no tasks'}")
    print_text(f"faults: {_counted(faults) or 'none'}")
    hours, events = sum(run.virtual_ns for run in runs) / HOUR, sum(run.events for run in runs)
    print_text(f"{hours:.1f} virtual hours, {events} events")


def swarm_document(runs: Sequence[Run]) -> dict[str, object]:
    """Return the totals and failures of all runs as a JSON document."""
    return {
        "runs": len(runs),
        "tasks": {str(state): count for state, count in sorted(_tasks(runs).items())},
        "faults": {
            str(kind): count for kind, count in sorted(sum((run.faults for run in runs), Counter[str]()).items())
        },
        "virtual_seconds": sum(run.virtual_ns for run in runs) / SECOND,
        "events": sum(run.events for run in runs),
        "digests": {str(run.seed): run.digest for run in runs},
        "failures": [
            {"seed": one.seed, "at_seconds": one.at_ns / SECOND, "text": one.text, "command": one.command}
            for one in (run.failure for run in runs)
            if one is not None
        ],
    }


def _print_failure(failure: Failure) -> None:
    for line in failure.lines:
        print_text(f"    {line}")
    print_text(f"seed {failure.seed} failed at {failure.at_ns / SECOND:.6f} virtual s: {failure.text}")
    print_text(f"replay it with: {failure.command}")


def _tasks(runs: Sequence[Run]) -> Counter[str]:
    return sum((run.tasks for run in runs), Counter[str]())


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
