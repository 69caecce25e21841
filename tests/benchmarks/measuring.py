"""What a benchmark is: a row of figures, those who compete in it, and repeats in which everybody takes turns."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

OURS = "messiahs"


class Reading(NamedTuple):
    """One number that one repeat gave."""

    figure: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a figure is to reach; with `times_peer` the numbers are multiples of that peer's speed in the same run."""

    figure: str
    at_least: float
    aim: float
    is_more_better: bool = False
    times_peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One who is measured; `processes` are those a profile would look into, by name.

    What is over before a profiler could attach gives instead by `imports` what Python says of one start, import by
    import.
    """

    name: str
    measure: Callable[[], Sequence[Reading]]
    processes: Mapping[str, int] = field(default_factory=dict)
    imports: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """One who is not measured, and why, and what would help."""

    name: str
    reason: str


Entrant = Contender | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much each row does in one repeat."""

    tasks: int = 3000
    latency_tasks: int = 50
    judgements: int = 200_000
    views: int = 1000
    starts: int = 10
    idle_seconds: float = 20.0
    classes: int = 20_000
    file_bytes: int = 768 << 20
    small_files: int = 1000
    simulated_tasks: int = 2000
    ended_members: int = 100_000
    brood_part: int = 1
    """Of many children, one of so many is there."""
    brood_seconds: float = 20.0


WHOLE = Sizes()
QUICK = Sizes(
    tasks=600,
    latency_tasks=15,
    judgements=50_000,
    views=200,
    starts=3,
    idle_seconds=6.0,
    classes=4000,
    file_bytes=128 << 20,
    small_files=1000,
    simulated_tasks=500,
    ended_members=20_000,
    brood_seconds=5.0,
)
TINY = Sizes(
    tasks=8,
    latency_tasks=2,
    judgements=100,
    views=3,
    starts=1,
    idle_seconds=0.1,
    classes=100,
    file_bytes=1 << 20,
    small_files=20,
    simulated_tasks=20,
    ended_members=20,
    brood_part=100,
    brood_seconds=2.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something worth a number; `enter` brings up what is needed and gives who competes, our own first."""

    name: str
    what: str
    budgets: tuple[Budget, ...] = ()
    enter: Callable[[Sizes], AbstractContextManager[Sequence[Entrant]]]


class Verdict(StrEnum):
    """How a figure stands against its budget."""

    AIM = "aim reached"
    REACHED = "reached"
    MISSED = "MISSED"
    OPEN = "no peer to compare with"
    NONE = ""


@dataclass(slots=True)
class Measured:
    """What came of one row; values by figure and contender, in order of appearance (mutable while it is measured)."""

    row: Row
    skipped: tuple[Skipped, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, contender: str, readings: Iterable[Reading]) -> None:
        """Take in one repeat of one contender."""
        for reading in readings:
            self.units[reading.figure] = reading.unit
            self.values.setdefault(reading.figure, {}).setdefault(contender, []).append(reading.value)

    def budget(self, figure: str) -> Budget | None:
        """Return the target of a figure."""
        return next((budget for budget in self.row.budgets if budget.figure == figure), None)

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
        budget, achieved = self.budget(figure), self.achieved(figure)
        if budget is None:
            return Verdict.NONE
        if achieved is None:
            return Verdict.OPEN
        is_more_better = budget.is_more_better or bool(budget.times_peer)
        sign = 1 if is_more_better else -1
        if sign * achieved >= sign * budget.aim:
            return Verdict.AIM
        return Verdict.REACHED if sign * achieved >= sign * budget.at_least else Verdict.MISSED


def measure(
    row: Row,
    sizes: Sizes,
    *,
    repeats: int,
    profiled: Callable[[Contender], AbstractContextManager[None]] | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Measured:
    """Measure a row: in each repeat everybody has one turn, so that what disturbs the machine disturbs all of them.

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
