"""The parts of a benchmark: a row of figures, contenders, and repeats in which they alternate."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

OURS = "messiahs"


class Reading(NamedTuple):
    """One number from one repeat."""

    figure: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The target of a figure; with `times_peer` the numbers are multiples of that peer's speed in the same run.

    With `beside`, so many times another figure of the row are enough, if that is between the two numbers.
    """

    figure: str
    at_least: float
    aim: float
    is_more_better: bool = False
    times_peer: str = ""
    beside: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A measured program; `processes` are those to profile, by name.

    What is over before a profiler could attach gives instead by `imports` what Python says of one start, import by
    import.
    """

    name: str
    measure: Callable[[], Sequence[Reading]]
    processes: Mapping[str, int] = field(default_factory=dict)
    imports: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A contender that is not measured, the reason, and a remedy."""

    name: str
    reason: str


Entrant = Contender | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The amount of work of each row in one repeat."""

    tasks: int = 3000
    calls: int = 1000
    latency_tasks: int = 50
    flood_tasks: int = 200
    flood_fill_seconds: float = 2.0
    """How long a flood lasts before anything is measured, and how long it is quiet afterwards."""
    judgements: int = 200_000
    views: int = 1000
    starts: int = 10
    idle_seconds: float = 20.0
    classes: int = 20_000
    file_bytes: int = 768 << 20
    small_files: int = 1000
    simulated_tasks: int = 2000
    ended_members: int = 100_000
    crossing_members: int = 100_000
    brood_part: int = 1
    """The fraction of children that exist, as its reciprocal."""
    brood_seconds: float = 20.0
    notified_tasks: int = 10_000
    piped_bytes: tuple[int, ...] = (100_000_000, 300_000_000)


WHOLE = Sizes()
QUICK = Sizes(
    tasks=600,
    calls=1000,
    latency_tasks=15,
    flood_tasks=100,
    judgements=50_000,
    views=200,
    starts=3,
    idle_seconds=6.0,
    classes=4000,
    file_bytes=128 << 20,
    small_files=1000,
    simulated_tasks=500,
    ended_members=20_000,
    crossing_members=10_000,
    brood_seconds=5.0,
    notified_tasks=1000,
    piped_bytes=(100_000_000,),
)
TINY = Sizes(
    tasks=8,
    calls=8,
    latency_tasks=2,
    flood_tasks=1,
    flood_fill_seconds=0.0,
    judgements=100,
    views=3,
    starts=1,
    idle_seconds=0.1,
    classes=100,
    file_bytes=1 << 20,
    small_files=20,
    simulated_tasks=20,
    ended_members=20,
    crossing_members=20,
    brood_part=100,
    brood_seconds=2.0,
    notified_tasks=4,
    piped_bytes=(1_000_000,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measured property; `enter` starts what is needed and returns the contenders, our own first."""

    name: str
    what: str
    budgets: tuple[Budget, ...] = ()
    enter: Callable[[Sizes], AbstractContextManager[Sequence[Entrant]]]


class Verdict(StrEnum):
    """Comparison of a figure with its budget."""

    AIM = "aim reached"
    REACHED = "reached"
    MISSED = "MISSED"
    OPEN = "no peer to compare with"
    NONE = ""


@dataclass(slots=True)
class Measured:
    """Results of one row; values by figure and contender, in order of appearance (mutable while it is measured)."""

    row: Row
    skipped: tuple[Skipped, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, contender: str, readings: Iterable[Reading]) -> None:
        """Record one repeat of one contender."""
        for reading in readings:
            self.units[reading.figure] = reading.unit
            self.values.setdefault(reading.figure, {}).setdefault(contender, []).append(reading.value)

    def budget(self, figure: str) -> Budget | None:
        """Return the target of a figure."""
        return next((budget for budget in self.row.budgets if budget.figure == figure), None)

    def at_least(self, figure: str) -> float | None:
        """Return what a figure has to reach; None without a budget."""
        budget = self.budget(figure)
        if budget is None:
            return None
        if budget.beside is None:
            return budget.at_least
        times, other = budget.beside
        strictest, laxest = sorted((budget.aim, budget.at_least))
        return min(laxest, max(strictest, times * statistics.median(self.values[other][OURS])))

    def achieved(self, figure: str) -> float | None:
        """Return the median of ours as the budget counts it: itself, or how many times as fast as the peer's."""
        budget, values = self.budget(figure), self.values[figure]
        ours = statistics.median(values[OURS]) if values.get(OURS) else None
        if ours is None or budget is None or not budget.times_peer:
            return ours
        if not values.get(budget.times_peer):
            return None
        peer = statistics.median(values[budget.times_peer])
        return ours / peer if budget.is_more_better else peer / ours

    def verdict(self, figure: str) -> Verdict:
        """Return the text that compares a figure with its budget."""
        budget, at_least, achieved = self.budget(figure), self.at_least(figure), self.achieved(figure)
        if budget is None or at_least is None:
            return Verdict.NONE
        if achieved is None:
            return Verdict.OPEN
        is_more_better = budget.is_more_better or bool(budget.times_peer)
        sign = 1 if is_more_better else -1
        if sign * achieved >= sign * budget.aim:
            return Verdict.AIM
        return Verdict.REACHED if sign * achieved >= sign * at_least else Verdict.MISSED


def measure(
    row: Row,
    sizes: Sizes,
    *,
    repeats: int,
    profiled: Callable[[Contender], AbstractContextManager[None]] | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Measured:
    """Measure a row: each repeat measures every contender once, so that disturbances affect all of them.

    With `profiled` only our own is measured, within the context that it gives.
    """
    measured = Measured(row)
    with row.enter(sizes) as entrants:
        measured.skipped = tuple(entrant for entrant in entrants if isinstance(entrant, Skipped))
        contenders = [entrant for entrant in entrants if isinstance(entrant, Contender)]
        if profiled is None:
            _take_turns(measured, contenders, repeats, tell)
        else:
            for contender in contenders:
                if contender.name == OURS:
                    with profiled(contender):
                        _take_turns(measured, [contender], repeats, tell)
    return measured


def _take_turns(measured: Measured, contenders: Sequence[Contender], repeats: int, tell: Callable[[str], None]) -> None:
    for repeat in range(1, repeats + 1):
        for contender in contenders:
            tell(f"{measured.row.name}: {contender.name}, {repeat} of {repeats}")
            measured.add(contender.name, contender.measure())


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the lowest and the highest."""
    return statistics.median(values), min(values), max(values)
