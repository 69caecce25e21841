"""Jobs that a module repeats for as long as it runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from messiahs.errors import MessiahsError

_LOG = logging.getLogger(__name__)


async def repeat(job: Callable[[], Awaitable[None]], *, period_seconds: float, failure: str) -> None:
    """Do a job at once, and again after each period, until this is cancelled.

    A job that fails is done again after the next period. The first of several failures in succession is logged, with
    `failure`, which says what could not be done.
    """
    is_failing = False
    while True:
        try:
            await job()
            is_failing = False
        except Exception as error:  # noqa: BLE001 - after any error the job must continue
            if not is_failing:
                is_bug = not isinstance(error, OSError | MessiahsError)
                _LOG.warning("%s: %s; the next attempt follows", failure, error, exc_info=is_bug)
            is_failing = True
        await asyncio.sleep(period_seconds)
