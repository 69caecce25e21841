"""The numbers of an array, in the notation of Slurm."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.errors import OptionValueError

# Of at most 13 digits each, such as milliseconds since 1970.
_PART: Final = re.compile(r"(?P<first>[0-9]{1,13})(-(?P<last>[0-9]{1,13})(:(?P<step>[0-9]{1,13}))?)?")
_LIMIT: Final = re.compile(r"[0-9]{1,13}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayNumbers:
    """The numbers of the members of an array, ascending, of which at most `at_once` (None: all) run at once."""

    numbers: Sequence[int]
    at_once: int | None = None


def array_numbers(text: str) -> ArrayNumbers:
    """Read numbers and ranges such as `1-100`, `1,4,9` or `0-99:5`, with at most N at once after `%N`.

    Each number is there once, unless they are too many for an array. Raises `OptionValueError`.
    """
    numbers, percent, limit = text.partition("%")
    if percent and not _LIMIT.fullmatch(limit):
        raise OptionValueError(f"`{text}`: after the % stands how many run at once, such as 0-499%20")
    parts = [_part(part, text) for part in numbers.split(",")]
    count = sum(map(len, parts))
    at_once = int(limit) if percent else None
    if len(parts) == 1:
        return ArrayNumbers(numbers=parts[0], at_once=at_once)
    # Of a list that is too long, only the length is looked at.
    return ArrayNumbers(numbers=sorted({*chain(*parts)}) if count <= MEMBER_LIMIT else range(count), at_once=at_once)


def _part(part: str, text: str) -> range:
    found = _PART.fullmatch(part)
    if found is None:
        raise OptionValueError(f"`{text}` is not a range such as 1-100, nor 1,4,9 or 0-99:5")
    first = int(found["first"])
    last, step = int(found["last"] or first), int(found["step"] or 1)
    if first > last:
        raise OptionValueError(f"`{text}`: a range does not descend")
    if not step:
        raise OptionValueError(f"`{text}`: a step is at least 1")
    return range(first, last + 1, step)
