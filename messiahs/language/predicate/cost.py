"""The cost of evaluating a predicate over classes, known in advance (MESSIAHS 5.4)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from messiahs.core.vectors.columns import Column
from messiahs.language.predicate.class_truth import pairs_in
from messiahs.language.predicate.syntax import Expression, Variable, comparisons_of
from messiahs.language.predicate.truth import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One step for each comparison, and for a comparison of two variables one more for each value of the second.

    `walked` is the number of iterations over the column at each place; equal comparisons are evaluated once.
    """

    comparisons: int
    walked: tuple[tuple[int, int], ...]

    def over(self, columns: Sequence[Column]) -> int:
        """Return the maximum number of steps."""
        return self.comparisons + sum(times * len(columns[place].values) for place, times in self.walked)


NOTHING: Final = Cost(comparisons=0, walked=())


def cost_of(expression: Expression, places: Places) -> Cost:
    """Return the cost of an expression whose variables are at these places."""
    comparisons = tuple(comparisons_of(expression))
    has_pairs = any(isinstance(each.left, Variable) and isinstance(each.right, Variable) for each in comparisons)
    walked = Counter(other for _, _, other in pairs_in(expression, places)) if has_pairs else Counter[int]()
    return Cost(comparisons=len(comparisons), walked=tuple(walked.items()))
