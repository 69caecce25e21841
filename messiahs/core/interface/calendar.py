"""Instants as calendar time, for policies that look at the clock."""

from datetime import UTC, datetime

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import SECOND, Instant


def calendar_time(moment: datetime) -> CalendarTime:
    """Read a moment in the time zone that it is in."""
    return CalendarTime(clock=60 * moment.hour + moment.minute, weekday=moment.isoweekday(), day=moment.day)


def utc(instant: Instant) -> CalendarTime:
    """Read an instant as nanoseconds since 1970 in UTC; a host in another time zone brings its own."""
    return calendar_time(datetime.fromtimestamp(instant // SECOND, UTC))
