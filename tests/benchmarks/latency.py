"""One no-op task alone in an idle federation: how long from submit until its end is known."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import pairwise

from messiahs.client import ModuleClient, Submission
from tests.benchmarks.federations import BORDER, BORDERS, CHAIN, GATES, LONE, Measurable, cpu_seconds, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.task_peers import gnu_parallel
from tests.waiting import let_pass

MEDIAN, SLOW = "median", "95th percentile"
MORE, OVER_HOPS = "median of the difference", "median over open hops"
PARTS = ("submit until answered", "taken in until bound", "bound until started", "started until ended and home")
_IDLE_SECONDS = 0.15


def rows() -> tuple[Row, ...]:
    """Return the rows about latency."""
    return (
        Row(
            name="latency",
            what="a lone no-op task, by the Python API, on one module",
            budgets=(Budget(figure=MEDIAN, at_least=7, aim=3),),
            enter=_local,
        ),
        Row(
            name="latency-afar",
            what="a lone no-op task, by the Python API, two hops away",
            budgets=(Budget(figure=MEDIAN, at_least=14, aim=8),),
            enter=_afar,
        ),
        _beside_hops("latency-border", "a lone no-op task over one border, and over one open hop", BORDER, CHAIN),
        _beside_hops("latency-borders", "a lone no-op task over two borders, and over two open hops", BORDERS, GATES),
    )


def _beside_hops(name: str, what: str, borders: str, hops: str) -> Row:
    budgets = (Budget(figure=MORE, at_least=5, aim=2),)
    return Row(name=name, what=what, budgets=budgets, enter=partial(_over_borders, borders=borders, hops=hops))


@contextmanager
def _local(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        yield (_ours(measurable, sizes), _alone(gnu_parallel(1)), _POLLS)


@contextmanager
def _afar(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(CHAIN) as measurable:
        yield (_ours(measurable, sizes),)


@contextmanager
def _over_borders(sizes: Sizes, *, borders: str, hops: str) -> Iterator[Sequence[Entrant]]:
    with up(borders) as closed, up(hops) as opened:
        yield (Contender(name=OURS, measure=partial(_in_pairs, closed, opened, sizes), processes=closed.processes),)


def _in_pairs(closed: Measurable, opened: Measurable, sizes: Sizes) -> list[Reading]:
    """Run tasks over borders and over open hops in turn, so that the machine's other work affects both alike."""
    with closed.client() as over_borders, opened.client() as over_hops:
        for client in (over_borders, over_hops):
            _one(client)
        used = [-_used(each) for each in (closed, opened)]
        pairs = [(_one(over_borders), _one(over_hops)) for _ in range(sizes.latency_tasks)]
        used = [before + _used(each) for before, each in zip(used, (closed, opened), strict=True)]
    more = {
        part: statistics.median(closer[part] - opener[part] for closer, opener in pairs) for part in ("all", *PARTS)
    }
    return [
        Reading(MORE, "ms", more["all"]),
        Reading(MEDIAN, "ms", statistics.median(closer["all"] for closer, _ in pairs)),
        Reading(OVER_HOPS, "ms", statistics.median(opener["all"] for _, opener in pairs)),
        *(Reading(f"{MORE}: {part}", "ms", more[part]) for part in PARTS),
        Reading("processor time of one task", "ms", 1000 * used[0] / len(pairs)),
        Reading("processor time of one task over open hops", "ms", 1000 * used[1] / len(pairs)),
    ]


def _used(measurable: Measurable) -> float:
    return sum(cpu_seconds(measurable.processes).values())


_POLLS = Skipped(name="HyperQueue", reason="its Python client looks for the end of a job once a second")


def _ours(measurable: Measurable, sizes: Sizes) -> Contender:
    def measure() -> list[Reading]:
        with measurable.client() as client:
            _one(client)
            before = _used(measurable)
            tasks = [_one(client) for _ in range(sizes.latency_tasks)]
            used_seconds = _used(measurable) - before
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
