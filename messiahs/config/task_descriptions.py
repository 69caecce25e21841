"""From the options of a task to its description (TDV) and the requirement on its machine (MESSIAHS 5.2)."""

from collections.abc import Mapping

from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import GPUS, requirement_for
from messiahs.language.predicate.joining import joined

_STATED = {"mem": "mem", "disk": "disk", "cpus": "cpus", "time": "est_time", "priority": "priority"}


def description_of(
    options: Mapping[str, object], /, *, attributes: Mapping[str, Value], uses: Mapping[str, int]
) -> dict[str, Value]:
    """Return what a task states; options that were not given are not in it."""
    stated = {name: options.get(option) for option, name in _STATED.items()}
    return {
        **attributes,
        **uses,
        **{name: value for name, value in stated.items() if isinstance(value, int)},
    }


def uses_of(uses: Mapping[str, int], gpus: int | None) -> dict[str, int]:
    """Return the counted things that a task uses, by kind."""
    return {**uses, **({} if gpus is None else {GPUS: gpus})}


def requirement_of(require: str, uses: Mapping[str, int]) -> str:
    """Return a requirement that also demands machines that assign what a task uses."""
    return joined(require, requirement_for(sorted(uses.items())))
