"""Quantities: their values, hints for units of a single letter, and formatting."""

import pytest

from messiahs.core.model.attributes import Unit
from messiahs.language.syntax.quantities import NoQuantity, Quantity, read_quantity, shown


@pytest.mark.parametrize(
    ("text", "steps", "unit"),
    [
        ("7", 7, Unit.NONE),
        ("-007", -7, Unit.NONE),
        ("0" * 5000 + "7", 7, Unit.NONE),
        ("-" + "0" * 5000, 0, Unit.NONE),
        ("0" * 5000 + "1.5s", 1500, Unit.SECONDS),
        ("10B", 10, Unit.BYTES),
        ("1kB", 1000, Unit.BYTES),
        ("1KiB", 1024, Unit.BYTES),
        ("1kiB", 1024, Unit.BYTES),
        ("1.5GiB", 3 << 29, Unit.BYTES),
        ("0.25TB", 250 * 10**9, Unit.BYTES),
        ("-1MB", -(10**6), Unit.BYTES),
        ("500ms", 500, Unit.SECONDS),
        ("1.5s", 1500, Unit.SECONDS),
        ("15min", 900_000, Unit.SECONDS),
        ("1w", 604_800_000, Unit.SECONDS),
        ("12.5%", 1250, Unit.SHARE),
        ("0.01%", 1, Unit.SHARE),
        ("0:00", 0, Unit.CLOCK),
        ("7:05", 425, Unit.CLOCK),
        ("24:00", 1440, Unit.CLOCK),
        ("1970-01-01", 0, Unit.DATE),
        ("2026-07-15", 20_649, Unit.DATE),
        ("2028-02-29", 21_243, Unit.DATE),
    ],
)
def test_a_quantity_is_an_integer_in_its_unit(text: str, steps: int, unit: Unit) -> None:
    assert read_quantity(text) == Quantity(steps, unit)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("4G", "write 4GiB (powers of 1024) or 4GB (powers of 1000)"),
        ("4k", "write 4kiB (powers of 1024) or 4kB (powers of 1000)"),
        ("15m", "write 15min"),
        ("15sec", "write 15s"),
        ("4gb", "write 4GB"),
        ("4parsecs", "units are"),
        ("0.5B", "smaller unit"),
        ("0.001s", "write an integer, or a quantity"),
        ("24:01", "the day ends with 24:00"),
        ("7:5", "write an integer, or a quantity"),
        ("2026-7-15", "dates are written 2026-01-05"),
        ("2027-02-29", "dates are written 2026-01-05"),
        ("1969-12-31", "dates begin with 1970-01-01"),
        ("0000-01-01", "dates are written 2026-01-05"),
        ("12026-07-15", "write an integer, or a quantity"),
        ("9" * 30, "integers go up to"),
        ("9" * 5000, "integers go up to"),
        ("9000000PB", "integers go up to"),
        ("4٣B", "write an integer, or a quantity"),
    ],
)
def test_an_invalid_quantity_is_reported_with_a_remedy(text: str, hint: str) -> None:
    answer = read_quantity(text)
    assert isinstance(answer, NoQuantity)
    assert hint in answer.hint


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4_000_000, Unit.BYTES, "4MB"),
        (8 << 20, Unit.BYTES, "8MiB"),
        (2048, Unit.BYTES, "2kiB"),
        (4_000_001, Unit.BYTES, "4000001B"),
        (0, Unit.BYTES, "0B"),
        (90, Unit.SECONDS, "90s"),
        (0, Unit.SECONDS, "0s"),
        (172800, Unit.SECONDS, "2d"),
        (1250, Unit.SHARE, "12.5%"),
        (1201, Unit.CLOCK, "20:01"),
        (20_649, Unit.DATE, "2026-07-15"),
        (-1, Unit.DATE, "-1"),
        (2**62, Unit.DATE, str(2**62)),
        (7, Unit.NONE, "7"),
    ],
)
def test_a_value_is_shown_in_its_largest_whole_unit(value: int, unit: Unit, text: str) -> None:
    assert shown(value, unit) == text
    quantity = read_quantity(text)
    assert isinstance(quantity, Quantity)
    assert quantity.steps == (value * 1000 if unit is Unit.SECONDS else value)
