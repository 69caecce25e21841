"""Jobs that a module repeats for as long as it runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from messiahs.errors import MessiahsError

_LOG = logging.getLogger(__name__)


async def repeat(
    job: Callable[[], Awaitable[None]],
    *,
    period_seconds: float,
    failure: str,
    retries_seconds: tuple[float, float] | None = None,
) -> None:
    """Do a job at once, and again after each period, until this is cancelled.

    A job that fails is done again after the next period; with `retries_seconds` after the first time of the two, which
    doubles with each failure in succession, up to the second. The first of several failures in succession is logged,
    with `failure`, which says what could not be done.
    """
    first_seconds, last_seconds = retries_seconds or (period_seconds, period_seconds)
    is_failing, retry_seconds = False, first_seconds
    while True:
        pause_seconds = period_seconds
        try:
            await job()
            is_failing, retry_seconds = False, first_seconds
        except Exception as error:  # noqa: BLE001 - after any error the job must continue
            if not is_failing:
                is_bug = not isinstance(error, OSError | MessiahsError)
                _LOG.warning("%s: %s; the next attempt follows", failure, error, exc_info=is_bug)
            is_failing = True
            pause_seconds, retry_seconds = retry_seconds, min(2 * retry_seconds, last_seconds)
        await asyncio.sleep(pause_seconds)
