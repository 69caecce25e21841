"""One no-op task alone in an idle federation: how long from submit until its end is known."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise

from messiahs.client import ModuleClient, Submission
from tests.benchmarks.federations import CHAIN, LONE, Measurable, cpu_seconds, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.task_peers import gnu_parallel
from tests.waiting import let_pass

MEDIAN, SLOW = "median", "95th percentile"
PARTS = ("submit until answered", "taken in until bound", "bound until started", "started until ended and home")
_IDLE_SECONDS = 0.15


def rows() -> tuple[Row, ...]:
    """Return the rows about latency."""
    return (
        Row(
            name="latency",
            what="a lone no-op task, by the Python API, on one module",
            budgets=(Budget(figure=MEDIAN, at_least=10, aim=4),),
            enter=_local,
        ),
        Row(
            name="latency-afar",
            what="a lone no-op task, by the Python API, two hops away",
            budgets=(Budget(figure=MEDIAN, at_least=30, aim=12),),
            enter=_afar,
        ),
    )


@contextmanager
def _local(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        yield (_ours(measurable, sizes), _alone(gnu_parallel(1)), _POLLS)


@contextmanager
def _afar(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(CHAIN) as measurable:
        yield (_ours(measurable, sizes),)


_POLLS = Skipped(name="HyperQueue", reason="its Python client looks for the end of a job once a second")


def _ours(measurable: Measurable, sizes: Sizes) -> Contender:
    def measure() -> list[Reading]:
        with measurable.client() as client:
            _one(client)
            before = sum(cpu_seconds(measurable.processes).values())
            tasks = [_one(client) for _ in range(sizes.latency_tasks)]
            used_seconds = sum(cpu_seconds(measurable.processes).values()) - before
        took = [task["all"] for task in tasks]
        return [
            Reading(MEDIAN, "ms", statistics.median(took)),
            Reading(SLOW, "ms", statistics.quantiles(took, n=20, method="inclusive")[-1]),
            *(Reading(f"median of {part}", "ms", statistics.median(task[part] for task in tasks)) for part in PARTS),
            Reading("processor time of one task: all", "ms", 1000 * used_seconds / len(tasks)),
        ]

    return Contender(name=OURS, measure=measure, processes=measurable.processes)


def _one(client: ModuleClient) -> dict[str, float]:
    """Return the milliseconds of a task by its parts; those that modules recorded are whole."""
    # The work after the last task is done by then, and no message is in transit.
    let_pass(_IDLE_SECONDS)
    begun_at = time.monotonic()
    task = client.submit(Submission(argv=("true",)))
    submitted_at = time.monotonic()
    document = client.wait(task)
    known_at = time.monotonic()
    if document["exit_code"] != 0:
        raise RuntimeError(f"the task did not finish: {document}")
    bound = next(step["at"] for step in document["history"] if step["event"] == "bound")
    recorded = [
        datetime.fromisoformat(at)
        for at in (document["submitted_at"], bound, document["started_at"], document["ended_at"])
    ]
    parts = [submitted_at - begun_at] + [(later - earlier).total_seconds() for earlier, later in pairwise(recorded)]
    return {"all": 1000 * (known_at - begun_at)} | dict(zip(PARTS, (1000 * part for part in parts), strict=True))


def _alone(entrant: Entrant) -> Entrant:
    if isinstance(entrant, Skipped):
        return entrant

    def measure() -> list[Reading]:
        return [Reading(MEDIAN, "ms", 1000 / reading.value) for reading in entrant.measure()]

    return Contender(name=entrant.name, measure=measure)
