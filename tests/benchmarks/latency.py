"""One no-op task alone in an idle federation: how long from submit until its end is known."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from messiahs.client import ModuleClient, Submission
from tests.benchmarks.federations import CHAIN, LONE, Measurable, pause, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.task_peers import gnu_parallel

MEDIAN, SLOW = "median", "95th percentile"
_IDLE_SECONDS = 0.15


def rows() -> tuple[Row, ...]:
    """Give the rows about latency."""
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
            _took_ms(client)
            took = [_took_ms(client) for _ in range(sizes.latency_tasks)]
        return [
            Reading(MEDIAN, "ms", statistics.median(took)),
            Reading(SLOW, "ms", statistics.quantiles(took, n=20, method="inclusive")[-1]),
        ]

    return Contender(name=OURS, measure=measure, processes=measurable.processes)


def _took_ms(client: ModuleClient) -> float:
    # What the last task left to do is done by then, and nothing is in flight.
    pause(_IDLE_SECONDS)
    begun_at = time.monotonic()
    document = client.wait(client.submit(Submission(argv=("true",))))
    took_seconds = time.monotonic() - begun_at
    if document["exit_code"] != 0:
        raise RuntimeError(f"the task did not finish: {document}")
    return 1000 * took_seconds


def _alone(entrant: Entrant) -> Entrant:
    if isinstance(entrant, Skipped):
        return entrant

    def measure() -> list[Reading]:
        return [Reading(MEDIAN, "ms", 1000 / reading.value) for reading in entrant.measure()]

    return Contender(name=entrant.name, measure=measure)
