"""Predicates of hostile neighbors: how long the slowest of them keeps a module busy, in processor time."""

import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from messiahs.core.interface.policies import Need
from messiahs.core.model.ids import SystemId
from messiahs.core.task_filter.matching import evaluate, why_not, why_too_costly
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview
from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.viewing import candidates, need_of
from tests.hostile.predicates import costly_texts, refused_texts

REFUSED = "the slowest refusal"
READ = "the slowest that is within all limits, read"
JUDGED = "the costliest of them, judged over 1,000 views of 64 classes"


def rows() -> tuple[Row, ...]:
    """Return the row about hostile predicates."""
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
    views = {candidate.system: candidate.view for candidate in candidates(sizes.views)}
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


def _judged(text: str, views: Mapping[SystemId, IndexedVector]) -> float:
    """Return how long one message keeps a module busy: which views could hold the task, and why others could not.

    The views were looked at before, and every hundredth has changed since.
    """
    need, overview = need_of(text), Overview()
    seen = {system: replace(view) for system, view in views.items()}
    _look(replace(need, slots=2), seen, overview)
    changed = {system: replace(seen[system]) for system in list(seen)[::100]}
    gc.collect()
    begun_at = time.process_time()
    _look(need, seen | changed, overview)
    return 1000 * (time.process_time() - begun_at) * 1000 / len(views)


def _look(need: Need, views: Mapping[SystemId, IndexedVector], overview: Overview) -> None:
    if not why_too_costly(need, views, overview):
        evaluate(need, views, overview)
        why_not(need, views, overview)
