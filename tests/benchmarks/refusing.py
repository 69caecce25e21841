"""Predicates of hostile neighbors: how long the slowest of them keeps a module busy, in processor time."""

import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from messiahs.core.fitting import fitting
from messiahs.core.vectors import Vector
from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.viewing import candidates, need_of
from tests.hostile.predicates import costly_texts, refused_texts

REFUSED = "the slowest refusal"
READ = "the slowest that is within all limits, read"
JUDGED = "the same, judged over 1,000 views of 64 classes"


def rows() -> tuple[Row, ...]:
    """Give the row about hostile predicates."""
    return (
        Row(
            name="hostile",
            what=f"{len(refused_texts())} texts that are refused, and {len(costly_texts())} that cost what they can",
            budgets=(Budget(figure=REFUSED, at_least=10, aim=5),),
            enter=_entered,
        ),
    )


@contextmanager
def _entered(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    views = tuple(candidate.view for candidate in candidates(sizes.views))
    parse_predicate("1 = 1")  # the grammar is read once

    def measure() -> list[Reading]:
        return [
            Reading(REFUSED, "ms", max(_read(refused_texts()))),
            Reading(READ, "ms", max(_read(costly_texts()))),
            Reading(JUDGED, "ms", max(_judged(text, views) for text in costly_texts().values())),
        ]

    yield (Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),)


def _read(texts: Mapping[str, str]) -> Iterator[float]:
    for text in texts.values():
        begun_at = time.process_time()
        with suppress(PredicateError):
            parse_predicate(text)
        yield 1000 * (time.process_time() - begun_at)


def _judged(text: str, views: Sequence[Vector]) -> float:
    need, fresh = need_of(text), [replace(view) for view in views]
    gc.collect()
    begun_at = time.process_time()
    for view in fresh:
        fitting(need, view)
    return 1000 * (time.process_time() - begun_at) * 1000 / len(views)
