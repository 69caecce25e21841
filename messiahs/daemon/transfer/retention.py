"""The job that deletes files that are no longer needed."""

import asyncio
import logging
from typing import Final

from messiahs.daemon.transfer.arrivals import ArrivingFiles

UNUSED_SECONDS: Final = 3_600.0
"""A file that nothing names is kept for so long: a submit, or a transfer, may be about to name it."""
_PERIOD_SECONDS: Final = 600.0
_LOG = logging.getLogger(__name__)


async def collect_for_ever(arrivals: ArrivingFiles, *, period_seconds: float = _PERIOD_SECONDS) -> None:
    """Delete what nobody needs at once and then after each `period_seconds`, until it is cancelled.

    What is needed follows from rows and from the ages of files, so no event says when to look. An error is logged, and
    the next look comes all the same.
    """
    while True:
        try:
            await _collect(arrivals)
        except Exception:  # noqa: BLE001 - whatever it is, files must not be kept for ever from then on
            _LOG.exception("files that no task needs could not be deleted; the next attempt follows")
        await asyncio.sleep(period_seconds)


async def _collect(arrivals: ArrivingFiles) -> None:
    await arrivals.forget_ended()
    deleted = await asyncio.to_thread(arrivals.files.collect, arrivals.in_use(), unused_seconds=UNUSED_SECONDS)
    if deleted:
        _LOG.info("%d files that no task needs were deleted", deleted)
