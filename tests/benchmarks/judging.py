"""A predicate: parsed, and evaluated over one machine, in processor time."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from messiahs.core.model.descriptions import SDV, layout_of, sorted_pairs
from messiahs.language.predicate.predicates import parse_predicate
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.predicates import CLASSADS, EXAMPLE, MACHINE, PREDICATES, TEN_TERMS, classads, translated

_PARSED_FOR = 100
"""The number of evaluations that take about as long as parsing a predicate."""


def rows() -> tuple[Row, ...]:
    """Return the rows about single predicates."""
    return (
        Row(
            name="predicate",
            what="one predicate that is true, judged over one machine (multiples of ClassAds' speed)",
            budgets=_budgets(at_least=10, aim=10),
            enter=_over_a_machine,
        ),
        Row(
            name="parse",
            what="a predicate that was never seen before, read from its text (multiples of ClassAds' speed)",
            budgets=_budgets(at_least=1 / 20, aim=1 / 4),
            enter=_parsed,
        ),
    )


def _budgets(*, at_least: float, aim: float) -> tuple[Budget, ...]:
    return tuple(
        Budget(figure=figure, at_least=at_least, aim=aim, times_peer=CLASSADS) for figure in (EXAMPLE, TEN_TERMS)
    )


@contextmanager
def _parsed(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    times = max(1, sizes.judgements // _PARSED_FOR)
    binding = classads()
    ours = Contender(name=OURS, measure=lambda: _read(parse_predicate, PREDICATES, times))
    if isinstance(binding, Skipped):
        yield (ours, binding)
        return
    texts = {figure: translated(text) for figure, text in PREDICATES.items()}
    yield (ours, Contender(name=CLASSADS, measure=lambda: _read(binding.ExprTree, texts, times)))


def _read(parse: Callable[[str], object], texts: Mapping[str, str], times: int) -> list[Reading]:
    return [
        Reading(figure, "us", 1e6 * _took(cast("Callable[[object], object]", parse), text, times))
        for figure, text in texts.items()
    ]


@contextmanager
def _over_a_machine(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    """Evaluate as a module evaluates its own machine: the predicate is bound to the names and types before."""
    description = SDV(sorted_pairs(MACHINE)).description()
    layout, values = layout_of(description), tuple(description.values())

    def bound(text: str) -> Callable[[object], object]:
        predicate = parse_predicate(text)
        predicate.bound_to(layout)
        return cast("Callable[[object], object]", predicate.bound_to(layout))

    ours = {figure: bound(text) for figure, text in PREDICATES.items()}
    yield (_judge(OURS, ours, over=values, times=sizes.judgements), _classads(sizes.judgements))


def _classads(judgements: int) -> Entrant:
    """Return HTCondor's own evaluator: an expression evaluated against an ad, both parsed before."""
    binding = classads()
    if isinstance(binding, Skipped):
        return binding
    ad = binding.ClassAd(dict(MACHINE))

    def evaluate(text: str) -> Callable[[object], object]:
        return cast("Callable[[object], object]", binding.ExprTree(translated(text)).eval)

    expressions = {figure: evaluate(text) for figure, text in PREDICATES.items()}
    return _judge(CLASSADS, expressions, over=ad, times=judgements)


def _judge(name: str, judges: Mapping[str, Callable[[object], object]], *, over: object, times: int) -> Contender:
    for figure, judge in judges.items():
        if judge(over) is not True:
            raise RuntimeError(f"{name} does not find {figure} true")

    def measure() -> list[Reading]:
        return [Reading(figure, "us", 1e6 * _took(judge, over, times)) for figure, judge in judges.items()]

    return Contender(name=name, measure=measure, processes={"the benchmark": os.getpid()})


def _took(judge: Callable[[object], object], over: object, times: int) -> float:
    """Return the processor seconds of one call, without those of the loop around it."""
    begun_at = time.process_time()
    for _ in range(times):
        judge(over)
    done_at = time.process_time()
    for _ in range(times):
        pass
    return max(0.0, 2 * done_at - begun_at - time.process_time()) / times
