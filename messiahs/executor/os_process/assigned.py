"""The environment variables by which a task learns which counted things it has."""

from collections.abc import Iterable
from typing import Final

from messiahs.core.model.counted import GPUS, Counted

_CUDA: Final = "CUDA_VISIBLE_DEVICES"
"""The variable by which programs find the GPUs that they may use, by their numbers; empty: none."""


def variables_for(
    assigned: Iterable[Counted], counted: Iterable[str], *, sees_others: bool = True
) -> tuple[tuple[str, str], ...]:
    """Return the variables for a task on a machine with `counted` kinds of things.

    Those of the kinds that it did not ask for are empty: otherwise its programs would take the GPUs of others. If it
    has the devices of its own things alone, programs count the GPUs that they find from 0 on.
    """
    numbers: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(counted, ()),
        **{each.name: each.numbers for each in assigned},
    }
    found = {f"MESSIAHS_{name.upper()}": each for name, each in numbers.items()}
    if GPUS in numbers:
        found[_CUDA] = numbers[GPUS] if sees_others else tuple(range(len(numbers[GPUS])))
    return tuple([(name, ",".join(map(str, each))) for name, each in found.items()])
