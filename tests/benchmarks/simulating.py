"""The simulator: how many events it handles in a second of processor time; it has one thread and never waits."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from messiahs.config.topology.reading import load_topology
from messiahs.sim.load.scenario import Workload, simulate
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped

RATE = "events through the codec"
_CAMPUS = Path(__file__).parents[2] / "topologies" / "campus.yaml"


def rows() -> tuple[Row, ...]:
    """Return the row about the simulator."""
    return (
        Row(
            name="simulator",
            what="the campus in virtual time, its tasks submitted at once",
            budgets=(Budget(figure=RATE, at_least=30_000, aim=60_000, is_more_better=True),),
            enter=_campus,
        ),
    )


@contextmanager
def _campus(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    topology = load_topology(_CAMPUS)
    workload = Workload(tasks=sizes.simulated_tasks, at="blays")

    def measure() -> list[Reading]:
        begun_at = time.process_time()
        outcome = simulate(topology, workload, seed=1)
        took_seconds = time.process_time() - begun_at
        if outcome.finished != sizes.simulated_tasks:
            raise RuntimeError(f"only {outcome.finished} tasks finished")
        return [
            Reading(RATE, "/s", outcome.events / took_seconds),
            Reading("tasks through the codec", "/s", outcome.tasks / took_seconds),
        ]

    yield (
        Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),
        Skipped(name="a run without the codec", reason="not built: every simulated message passes through the codec"),
        Skipped(name="a run of 10,000 modules", reason="not built: scenarios are topology files of a site's size"),
    )
