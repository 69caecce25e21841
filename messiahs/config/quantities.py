"""Numbers with units: `8GiB`, `500MB`, `15min`, `500ms`, `12.5%`.

A number without a unit and an ambiguous letter are refused with a suggestion, because a silent guess could be wrong by
a factor of a billion.
"""

import re

from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.instants import HOUR, MILLISECOND, MINUTE, SECOND
from messiahs.errors import MessiahsError

SIZES = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", start=1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("kMGTP", start=1)},
    "KiB": 1024,
}
DURATIONS = {
    "ms": MILLISECOND,
    "s": SECOND,
    "min": MINUTE,
    "h": HOUR,
    "d": 24 * HOUR,
    "w": 7 * 24 * HOUR,
}
_LONG_DURATIONS = {name: factor for name, factor in DURATIONS.items() if factor >= SECOND}
_SHARE_STEPS_PER_PERCENT = 100
_NUMBER_AND_UNIT = re.compile(r"([0-9]+)(?:\.([0-9]{1,2}))?([A-Za-z%]*)", re.ASCII)
_DIGITS = len(str(INTEGER_HIGHEST))
_NEAR_UNITS = {"sec": "s", "m": "min", "mins": "min", "minutes": "min", "hours": "h", "days": "d", "b": "B"}


def size_bytes(text: str) -> int:
    """Return the bytes of a size such as `8GiB`; a `MessiahsError` suggests a correct spelling."""
    return _whole(text, SIZES, "a size", "8GiB, 500MB or 10B")


def duration_ns(text: str) -> int:
    """Return the nanoseconds of a duration such as `15min`; a `MessiahsError` suggests a correct spelling."""
    return _whole(text, DURATIONS, "a duration", "15min, 2d or 500ms")


def duration_seconds(text: str) -> int:
    """Return the whole seconds of a duration; fractions are refused, because limits of tasks are in seconds."""
    examples = "90s, 15min or 2d"
    nanoseconds = _whole(text, DURATIONS, "a duration", examples, suggested=_LONG_DURATIONS)
    if nanoseconds % SECOND:
        raise MessiahsError(f"`{text}` is not a whole number of seconds: write for example {examples}")
    return nanoseconds // SECOND


def share(text: str) -> int:
    """Return a percentage such as `12.5%` in steps of 1/100 %."""
    return _whole(text, {"%": _SHARE_STEPS_PER_PERCENT}, "a percentage", "0% or 12.5%")


def _whole(
    text: str, units: dict[str, int], what: str, examples: str, *, suggested: dict[str, int] | None = None
) -> int:
    """Return a number of steps; errors suggest only the `suggested` units, without them all."""
    compact = "".join(text.split())
    match = _NUMBER_AND_UNIT.fullmatch(compact)
    if match is None:
        raise MessiahsError(f"`{text}` is not {what}: write for example {examples}")
    digits, decimals, unit = match.group(1), match.group(2) or "", match.group(3)
    if unit not in units:
        suggestion = _suggestion(compact, unit, units if suggested is None else suggested)
        raise MessiahsError(f"`{text}` is not {what}: {suggestion or f'write {examples}'}")
    if compact != text.strip():
        raise MessiahsError(f"`{text}` is not {what}: write {compact}, without a space")
    number = (digits + decimals).lstrip("0") or "0"
    scale: int = 10 ** len(decimals)
    steps, rest = divmod(int(number[: _DIGITS + 1]) * units[unit], scale)
    if len(number) > _DIGITS or steps > INTEGER_HIGHEST:
        raise MessiahsError(f"`{text[:40]}` is larger than can be stored")
    if rest:
        raise MessiahsError(f"`{text}` is finer than can be stored")
    return steps


def _suggestion(text: str, unit: str, units: dict[str, int]) -> str:
    number = text.removesuffix(unit)
    if not unit:
        return f"it needs a unit, as in {' or '.join(number + name for name in list(units)[:3])}"
    if f"{unit.upper()}iB" in SIZES and units is SIZES:
        letter = "k" if unit in "kK" else unit.upper()
        return f"write {number}{letter}iB (powers of 1024) or {number}{letter}B (powers of 1000)"
    near = _NEAR_UNITS.get(unit) or next((name for name in units if name.lower() == unit.lower()), None)
    return f"write {number}{near}" if near in units else ""
