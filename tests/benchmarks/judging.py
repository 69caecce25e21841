"""Predicates: one judged over one machine, and one over the views of a thousand neighbors, in processor time."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import cast

from messiahs.core.attributes import Value
from messiahs.core.buckets import bucket_of
from messiahs.core.descriptions import SDV, layout_of, sorted_pairs
from messiahs.core.ids import SystemId
from messiahs.core.neighbors import Relation
from messiahs.core.ports import Candidate, Need
from messiahs.core.vectors import ClassValue, Interval, MachineClass, Vector
from messiahs.language.predicates import parse_predicate
from messiahs.policy.placement import by_free_slots
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped

CLASSES = 64
CLASSADS = "ClassAds"
EXAMPLE, TEN_TERMS = "the paper's example (2 terms)", "ten terms"
RANKED = "candidates judged by a new predicate, and put in order"
RANKED_AGAIN = "the same predicate again"
FIRST_RANKED = "the first one when all views came just now"
_GIB = 1 << 30
_MACHINE: Mapping[str, Value] = {
    "speed": 1000, "nproc": 8, "slots": 8, "free_slots": 5, "total_mem": 32 * _GIB, "avail_mem": 16 * _GIB,
    "total_disk": 500 * _GIB, "avail_disk": 250 * _GIB, "load": 1200, "arch": "x86_64", "os": "Linux", "cpu": "sparc",
}  # fmt: skip
_TEN_TERMS_OF_SPEED = (
    '$arch eq "x86_64" and $os eq "Linux" and $speed >= {} and $nproc >= 4 and $free_slots >= 1 and '
    '$avail_mem >= 4000000 and $avail_disk >= 4000000 and $load < 9000 and $slots <= 64 and $cpu eq "sparc"'
)
_SPEEDS: Mapping[str, int] = {FIRST_RANKED: 400, RANKED: 500, RANKED_AGAIN: 500}
_PREDICATES: Mapping[str, str] = {
    EXAMPLE: '($avail_mem >= 4000000) and ($cpu eq "sparc")',
    TEN_TERMS: _TEN_TERMS_OF_SPEED.format(400),
}


def rows() -> tuple[Row, ...]:
    """Give the rows about predicates."""
    return (
        Row(
            name="predicate",
            what="one predicate that is true, judged over one machine (multiples of ClassAds' speed)",
            budgets=tuple(
                Budget(figure=figure, at_least=5, aim=10, times_peer=CLASSADS) for figure in (EXAMPLE, TEN_TERMS)
            ),
            enter=_over_a_machine,
        ),
        Row(
            name="views",
            what=f"one predicate over 1,000 views of {CLASSES} classes each",
            budgets=tuple(Budget(figure=figure, at_least=20, aim=5) for figure in (RANKED, RANKED_AGAIN)),
            enter=_over_views,
        ),
    )


@contextmanager
def _over_a_machine(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    """Have us judge as a module judges its own machine: the predicate is bound to the names and types before."""
    description = SDV(sorted_pairs(_MACHINE)).description()
    layout, values = layout_of(description), tuple(description.values())

    def bound(text: str) -> Callable[[object], object]:
        predicate = parse_predicate(text)
        predicate.bound_to(layout)
        return cast("Callable[[object], object]", predicate.bound_to(layout))

    ours = {figure: bound(text) for figure, text in _PREDICATES.items()}
    yield (_judge(OURS, ours, over=values, times=sizes.judgements), _classads(sizes.judgements))


def _classads(judgements: int) -> Entrant:
    """Give HTCondor's own judge: an expression evaluated against an ad, both parsed before."""
    if find_spec("classad2") is None:
        return Skipped(name=CLASSADS, reason="not installed: pip install '.[benchmarks]'")
    classad2 = import_module("classad2")
    ad = classad2.ClassAd(dict(_MACHINE))

    def evaluate(text: str) -> Callable[[object], object]:
        translated = text.replace("$", "").replace(" and ", " && ").replace(" eq ", " == ")
        return cast("Callable[[object], object]", classad2.ExprTree(translated).eval)

    expressions = {figure: evaluate(text) for figure, text in _PREDICATES.items()}
    return _judge(CLASSADS, expressions, over=ad, times=judgements)


def _judge(name: str, judges: Mapping[str, Callable[[object], object]], *, over: object, times: int) -> Contender:
    for figure, judge in judges.items():
        if judge(over) is not True:
            raise RuntimeError(f"{name} does not find {figure} true")

    def measure() -> list[Reading]:
        return [Reading(figure, "us", 1e6 * _took(judge, over, times)) for figure, judge in judges.items()]

    return Contender(name=name, measure=measure, processes={"the benchmark": os.getpid()})


def _took(judge: Callable[[object], object], over: object, times: int) -> float:
    """Give the processor seconds of one call, without those of the loop around it."""
    begun_at = time.process_time()
    for _ in range(times):
        judge(over)
    done_at = time.process_time()
    for _ in range(times):
        pass
    return max(0.0, 2 * done_at - begun_at - time.process_time()) / times


@contextmanager
def _over_views(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    said = tuple(_candidates(sizes.views))
    randomness = _Drawn()

    def measure() -> list[Reading]:
        candidates = tuple(replace(one, view=Vector(one.view.classes)) for one in said)
        needs = {figure: _need(_TEN_TERMS_OF_SPEED.format(speed)) for figure, speed in _SPEEDS.items()}
        took = {}
        for figure in (FIRST_RANKED, RANKED, RANKED_AGAIN):
            gc.collect()  # each pays for its own garbage
            begun_at = time.process_time()
            ranked = by_free_slots(candidates, needs[figure], randomness)
            took[figure] = 1000 * (time.process_time() - begun_at) * 1000 / sizes.views
            if not ranked:
                raise RuntimeError("no view could hold the task: that is no measure of anything")
        return [Reading(figure, "ms", took[figure]) for figure in (RANKED, RANKED_AGAIN, FIRST_RANKED)]

    yield (Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),)


def _need(requirement: str) -> Need:
    return Need(slots=1, mem_bytes=_GIB, disk_bytes=0, requirement=parse_predicate(requirement))


class _Drawn:
    """Random numbers, the same in every run."""

    def __init__(self) -> None:
        self._random = Random(1)

    def bits(self, count: int, /) -> int:
        return self._random.getrandbits(count)


def _candidates(views: int) -> Iterator[Candidate]:
    random = Random(2)
    for number in range(views):
        classes = tuple(_machine_class(random) for _ in range(CLASSES))
        yield Candidate(system=SystemId(f"system-{number}"), relation=Relation.CHILD, view=Vector(classes))


def _machine_class(random: Random) -> MachineClass:
    """Give a class of random machines near the example's; some satisfy the predicates."""

    def near(value: Value) -> ClassValue:
        if isinstance(value, str):
            return value if random.random() < 0.9 else "other"
        low = bucket_of(value) + random.randint(-6, 6)
        return Interval(low, low + random.randint(0, 3))

    attributes = tuple(sorted((name, near(value)) for name, value in _MACHINE.items()))
    return MachineClass(count=random.randint(1, 1000), attributes=attributes)
