"""The job that deletes files that are no longer needed."""

import asyncio
import logging
from functools import partial
from typing import Final

from messiahs.channel.periodic_jobs import repeat
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.passed_files import PassingFiles

UNUSED_SECONDS: Final = 3_600.0
"""Retention time of a file that no row names, and of an incomplete one, because something may be about to need it."""
_PERIOD_SECONDS: Final = 600.0
_LOG = logging.getLogger(__name__)


async def collect_periodically(
    arrivals: ArrivingFiles, passing: PassingFiles, *, period_seconds: float = _PERIOD_SECONDS
) -> None:
    """Delete what no task uses and the cache has no room for, at once and then after each `period_seconds`.

    Whether a file is needed depends on rows and on its age, so there is no event for it.
    """
    failure = "files that no task needs could not be deleted"
    await repeat(partial(_collect, arrivals, passing), period_seconds=period_seconds, failure=failure)


async def _collect(arrivals: ArrivingFiles, passing: PassingFiles) -> None:
    passing.forget_ended()
    await arrivals.forget_ended()
    collect = partial(arrivals.files.collect, unused_seconds=UNUSED_SECONDS, cache_bytes=arrivals.cache_bytes)
    deleted = await asyncio.to_thread(collect, arrivals.in_use())
    if deleted:
        _LOG.info("%d files that no task needs were deleted", deleted)
