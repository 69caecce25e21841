"""Instants as calendar time, for policies that depend on the time of day."""

from datetime import UTC, datetime

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.dates import day_number
from messiahs.core.model.instants import SECOND, Instant


def calendar_time(moment: datetime) -> CalendarTime:
    """Return a moment as calendar time in its own time zone."""
    return CalendarTime(clock=60 * moment.hour + moment.minute, date=day_number(moment.date()))


def utc(instant: Instant) -> CalendarTime:
    """Convert an instant, as nanoseconds since 1970, in UTC; a host in another time zone supplies its own function."""
    return calendar_time(datetime.fromtimestamp(instant // SECOND, UTC))
