"""Work in slices, done at once."""

from typing import TypeVar

from messiahs.daemon.api.json_slices import Steps

T = TypeVar("T")


def result_of(steps: Steps[T]) -> T:
    """Return the result of all slices."""
    return counted(steps)[0]


def counted(steps: Steps[T]) -> tuple[T, list[int]]:
    """Return the result of all slices, and what each was expected to cost."""
    costs: list[int] = []
    while True:
        try:
            costs.append(next(steps))
        except StopIteration as end:
            return end.value, costs
