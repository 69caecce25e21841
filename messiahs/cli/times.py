"""Times that users write: those that come, and those that have passed. Times of day and dates are local."""

import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from messiahs.config.quantities import duration_seconds
from messiahs.errors import MessiahsError

_CLOCK: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_FORMS: Final = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M")


def coming_time(text: str) -> int:
    """Read a time that comes, in seconds since 1970: `18:00` is the next one."""
    now = time.time()
    found = seconds_of(text, now)
    if found is None:
        raise click.BadParameter(f"`{text}` is no time: write 18:00, 2026-01-31 or 2026-01-31T18:00")
    if found <= now:
        raise click.BadParameter(f"{text} has passed")
    return found


def past_time(text: str) -> datetime:
    """Read a time that has passed: so long ago (`90min`, in UTC), or a local date, or date and time."""
    now = datetime.now(UTC)
    try:
        date = _date(text)
        begin = now - timedelta(seconds=duration_seconds(text)) if date is None else date.astimezone()
    except (MessiahsError, ValueError, OverflowError, OSError) as error:
        raise click.BadParameter(f"`{text}` is no time: write 90min, 7d, 2026-01-31 or 2026-01-31T18:00") from error
    if begin > now:
        raise click.BadParameter(f"{text} has not come yet")
    return begin


def seconds_of(text: str, now: float) -> int | None:
    """Return a local time in seconds since 1970, for a time of day the next one; None if it is none."""
    clock = _CLOCK.fullmatch(text)
    try:
        if clock is not None:
            today = datetime.fromtimestamp(now).replace(  # noqa: DTZ006 - local, as people write it
                hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0
            )
            coming = today if today.timestamp() > now else today + timedelta(days=1)
            return int(coming.timestamp())
        date = _date(text)
        return None if date is None else int(date.timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _date(text: str) -> datetime | None:
    for form in _FORMS if len(text) >= len("2026-01-31") else ():
        with suppress(ValueError):
            return datetime.strptime(text, form)  # noqa: DTZ007 - local, as people write it
    return None
