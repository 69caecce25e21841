"""The job that deletes files that are no longer needed."""

import asyncio
import logging
from functools import partial
from typing import Final

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

    Whether a file is needed depends on rows and on its age, so there is no event for it. Errors are logged, and the job
    continues.
    """
    while True:
        try:
            await _collect(arrivals, passing)
        except Exception:  # noqa: BLE001 - after any error the job must continue, or files would be kept permanently
            _LOG.exception("files that no task needs could not be deleted; the next attempt follows")
        await asyncio.sleep(period_seconds)


async def _collect(arrivals: ArrivingFiles, passing: PassingFiles) -> None:
    passing.forget_ended()
    await arrivals.forget_ended()
    collect = partial(arrivals.files.collect, unused_seconds=UNUSED_SECONDS, cache_bytes=arrivals.cache_bytes)
    deleted = await asyncio.to_thread(collect, arrivals.in_use())
    if deleted:
        _LOG.info("%d files that no task needs were deleted", deleted)
