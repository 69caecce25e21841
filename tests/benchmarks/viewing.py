"""One predicate over the views of a thousand neighbors, in processor time, beside as many ads matched one by one."""

import gc
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from messiahs.core.interface.policies import CalendarTime, Candidate, Need, RankQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import evaluate
from messiahs.core.vectors.buckets import bucket_of, lowest_in
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview
from messiahs.core.vectors.vectors import ClassValue, Interval, MachineClass, Vector
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.policy.location import WeightedFreeSlots
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.predicates import CLASSADS, EXAMPLE, GIB, MACHINE, PREDICATES, classads, ten_terms, translated

CLASSES = 64
RANKED = "candidates judged by ten new terms, and put in order"
RANKED_AGAIN = "the same predicate again"
RANKED_EXAMPLE = "the paper's example, new"
FIRST_RANKED = "ten terms when all views came just now"
_NEW_SPEED = 500
_NOON = CalendarTime(clock=12 * 60, date=20_649)
_PART = 10
"""A tenth of all ads is created: they are large, and all take equally long."""


def rows() -> tuple[Row, ...]:
    """Return the row about views."""
    return (
        Row(
            name="views",
            what=f"one predicate over 1,000 views of {CLASSES} classes each",
            budgets=(
                Budget(figure=RANKED_AGAIN, at_least=5, aim=5),
                Budget(figure=FIRST_RANKED, at_least=200, aim=50),
            ),
            enter=_over_views,
        ),
    )


@contextmanager
def _over_views(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    said = tuple(candidates(sizes.views))
    yield (_ours(said), _one_by_one(said))


def _ours(said: Sequence[Candidate]) -> Contender:
    randomness, overview, part = _Drawn(), Overview(), WeightedFreeSlots()

    def measure() -> list[Reading]:
        fresh = tuple(replace(one, view=IndexedVector(one.view.vector)) for one in said)
        texts = {
            FIRST_RANKED: ten_terms(400),
            RANKED_EXAMPLE: PREDICATES[EXAMPLE],
            RANKED: ten_terms(_NEW_SPEED),
            RANKED_AGAIN: ten_terms(_NEW_SPEED),
        }
        took = {}
        for figure, text in texts.items():
            need = need_of(text)
            gc.collect()  # each contender pays for its own garbage
            begun_at = time.process_time()
            evaluate(need, {each.system: each.view for each in fresh}, overview)
            query = RankQuery(candidates=fresh, need=need, tdv=TDV(()), here=None, now=_NOON)
            ranked, _ = part.decide(query, (), randomness)
            took[figure] = 1000 * (time.process_time() - begun_at) * 1000 / len(said)
            if not ranked:
                raise RuntimeError("no view could hold the task: that is no measure of anything")
        order = (RANKED, RANKED_AGAIN, RANKED_EXAMPLE, FIRST_RANKED)
        return [Reading(figure, "ms", took[figure]) for figure in order]

    return Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()})


def _one_by_one(said: Sequence[Candidate]) -> Entrant:
    """Return HTCondor's evaluator, which knows single machines: one ad represents each class."""
    binding = classads()
    if isinstance(binding, Skipped):
        return binding
    some = said[: max(1, len(said) // _PART)]
    ads = [binding.ClassAd(_machine_of(each)) for candidate in some for each in candidate.view.vector.classes]

    def measure() -> list[Reading]:
        readings = []
        for figure, text in ((RANKED, ten_terms(_NEW_SPEED)), (RANKED_EXAMPLE, PREDICATES[EXAMPLE])):
            evaluate = binding.ExprTree(translated(text)).eval
            begun_at = time.process_time()
            true = sum([evaluate(ad) is True for ad in ads])
            took = time.process_time() - begun_at
            if not true:
                raise RuntimeError("no ad matches: that is no measure of anything")
            readings.append(Reading(figure, "ms", 1000 * took * 1000 / len(some)))
        return readings

    return Contender(name=CLASSADS, measure=measure)


def _machine_of(machine_class: MachineClass) -> dict[str, Value]:
    said = dict(machine_class.attributes)
    return {name: lowest_in(value.low) for name, value in said.items() if isinstance(value, Interval)} | {
        name: value for name, value in said.items() if isinstance(value, str)
    }


def need_of(requirement: str) -> Need:
    """Return the need of a task that asks for little besides."""
    return Need(slots=1, mem_bytes=GIB, disk_bytes=0, requirement=parse_predicate(requirement))


class _Drawn:
    """Random numbers, the same in every run."""

    def __init__(self) -> None:
        self._random = Random(1)

    def bits(self, count: int, /) -> int:
        return self._random.getrandbits(count)


def candidates(views: int) -> Iterator[Candidate]:
    """Return neighbors, the same in every run."""
    random = Random(2)
    for number in range(views):
        classes = tuple(_machine_class(random) for _ in range(CLASSES))
        yield Candidate(
            system=SystemId(f"system-{number}"), relation=Relation.CHILD, view=IndexedVector(Vector(classes))
        )


def _machine_class(random: Random) -> MachineClass:
    """Return a class of random machines near the example's; some satisfy the predicates."""

    def near(value: Value) -> ClassValue:
        if isinstance(value, str):
            return value if random.random() < 0.9 else "other"
        low = bucket_of(value) + random.randint(-6, 6)
        return Interval(low, low + random.randint(0, 3))

    attributes = tuple(sorted((name, near(value)) for name, value in MACHINE.items()))
    return MachineClass(count=random.randint(1, 1000), attributes=attributes)
