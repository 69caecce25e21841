"""Dates as integers, since a predicate compares integers: days since 1970-01-01."""

from datetime import date, timedelta
from typing import Final

_FIRST: Final = date(1970, 1, 1)


def day_number(day: date) -> int:
    """Return a date as the number of days since 1970-01-01."""
    return (day - _FIRST).days


def date_of(number: int) -> date:
    """Return the date that is `number` days after 1970-01-01; `OverflowError` beyond the year 9999."""
    return _FIRST + timedelta(days=number)


LAST_DAY: Final = day_number(date.max)
"""The last date that a policy can name."""
