"""The environment variables by which a task learns which counted things it has."""

from collections.abc import Iterable
from typing import Final

from messiahs.core.model.counted import GPUS, Counted

_CUDA: Final = "CUDA_VISIBLE_DEVICES"
"""The variable by which programs find the GPUs that they may use, by their numbers; empty: none."""


def variables_for(assigned: Iterable[Counted], counted: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the variables for a task on a machine with `counted` kinds of things.

    Those of the kinds that it did not ask for are empty: otherwise its programs would take the GPUs of others.
    """
    numbers = {**dict.fromkeys(counted, ""), **{each.name: ",".join(map(str, each.numbers)) for each in assigned}}
    own = {f"MESSIAHS_{name.upper()}": text for name, text in numbers.items()}
    return tuple({**own, **({_CUDA: numbers[GPUS]} if GPUS in numbers else {})}.items())
