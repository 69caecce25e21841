"""Numbers with units in policy files: `4GiB`, `15min`, `12.5%`, `20:00`, `2026-12-24`.

A unit of a single letter is refused with a hint, since a guess could be wrong by a factor of a billion.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Unit
from messiahs.core.model.dates import LAST_DAY, date_of, day_number

_SIZES: Final = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", start=1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("kMGTP", start=1)},
    "KiB": 1024,
}
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SECOND: Final = 1000
_SHARE_STEPS: Final = 100
_MINUTES_PER_HOUR: Final = 60
_LAST_HOUR: Final = 24
_WORD: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]{1,2}))?([A-Za-z%]+)", re.ASCII)
_CLOCK: Final = re.compile(r"([0-9]{1,2}):([0-5][0-9])", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]+-[0-9]+", re.ASCII)
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_DIGITS: Final = 19
_NEAR_UNITS: Final = {
    "m": "min",
    "mins": "min",
    "minutes": "min",
    "sec": "s",
    "S": "s",
    "hours": "h",
    "H": "h",
    "days": "d",
    "b": "B",
}


@dataclass(frozen=True, slots=True)
class NoQuantity:
    """A text that is not a quantity, with a message and a hint."""

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """An integer in steps of its unit; durations are in milliseconds here, elsewhere in the unit of their attribute."""

    steps: int
    unit: Unit


def read_quantity(text: str) -> Quantity | NoQuantity:
    """Parse a word; a number without a unit has `Unit.NONE`."""
    if _INTEGER.fullmatch(text):
        return _bounded(text, _integer(text), Unit.NONE)
    clock = _CLOCK.fullmatch(text)
    if clock:
        minutes = int(clock[1]) * _MINUTES_PER_HOUR + int(clock[2])
        if minutes > _LAST_HOUR * _MINUTES_PER_HOUR:
            return NoQuantity(f"`{text}` is not a time of day", "the day ends with 24:00")
        return Quantity(minutes, Unit.CLOCK)
    if _DATE.fullmatch(text):
        return _dated(text)
    word = _WORD.fullmatch(text)
    if word is None:
        hint = "write an integer, or a quantity such as 4GiB, 15min, 12.5%, 20:00 or 2026-12-24"
        return NoQuantity(f"`{text[:40]}` is not a number", hint)
    sign, digits, decimals, unit = word.groups()
    for units, meaning in ((_SIZES, Unit.BYTES), (_MILLISECONDS, Unit.SECONDS), ({"%": _SHARE_STEPS}, Unit.SHARE)):
        if unit in units:
            return _scaled(text, sign + digits, decimals or "", factor=units[unit], unit=meaning)
    return NoQuantity(f"`{text[:40]}` has no known unit", _suggestion(text.removesuffix(unit), unit))


def _dated(text: str) -> Quantity | NoQuantity:
    try:
        number = day_number(date.fromisoformat(text))
    except ValueError:
        return NoQuantity(f"`{text}` is not a date", "dates are written 2026-01-05: year, month, day")
    return (
        Quantity(number, Unit.DATE)
        if number >= 0
        else NoQuantity(f"`{text}` is too early", "dates begin with 1970-01-01")
    )


def _integer(text: str) -> int | None:
    """Return the integer, or None if it has too many digits; leading zeros are ignored."""
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > _DIGITS:
        return None
    return -int(digits) if text.startswith("-") else int(digits)


def _bounded(text: str, steps: int | None, unit: Unit) -> Quantity | NoQuantity:
    if steps is None or not INTEGER_LOWEST <= steps <= INTEGER_HIGHEST:
        return NoQuantity(f"`{text[:40]}` does not fit into 64 bits", f"integers go up to {INTEGER_HIGHEST}")
    return Quantity(steps, unit)


def _scaled(text: str, number: str, decimals: str, *, factor: int, unit: Unit) -> Quantity | NoQuantity:
    whole = _integer(number + decimals)
    if whole is None:
        return _bounded(text, None, unit)
    divisor: int = 10 ** len(decimals)
    steps, rest = divmod(whole * factor, divisor)
    if rest:
        return NoQuantity(f"`{text}` is too precise", "write it in a smaller unit")
    return _bounded(text, steps, unit)


def _suggestion(number: str, unit: str) -> str:
    if unit.upper() in {"K", "M", "G", "T", "P"} and unit != "m":
        letter = "k" if unit in "kK" else unit.upper()
        return f"write {number}{letter}iB (powers of 1024) or {number}{letter}B (powers of 1000)"
    units = (*_SIZES, *_MILLISECONDS)
    near = _NEAR_UNITS.get(unit) or next((name for name in units if name.lower() == unit.lower()), None)
    return f"write {number}{near}" if near else "units are B kB MB GB KiB MiB GiB, ms s min h d w, %"


def shown(value: int, unit: Unit) -> str:
    """Format a value as in a policy file, in the largest unit that needs no decimals."""
    match unit:
        case Unit.BYTES:
            return _largest(value, {name: size for name, size in _SIZES.items() if name != "KiB"})
        case Unit.SECONDS:
            return _largest(value, {name: step // _SECOND for name, step in _MILLISECONDS.items() if step >= _SECOND})
        case Unit.MILLISECONDS:
            return _largest(value, _MILLISECONDS)
        case Unit.SHARE:
            return f"{value / _SHARE_STEPS:.2f}".rstrip("0").rstrip(".") + "%"
        case Unit.CLOCK:
            return f"{value // _MINUTES_PER_HOUR}:{value % _MINUTES_PER_HOUR:02}"
        case Unit.DATE:
            return date_of(value).isoformat() if 0 <= value <= LAST_DAY else str(value)
        case Unit.NONE:
            return str(value)


def _largest(value: int, units: dict[str, int]) -> str:
    fitting = [(size, name) for name, size in units.items() if value % size == 0]
    size, name = max(fitting) if value else min(fitting)
    return f"{value // size}{name}"
