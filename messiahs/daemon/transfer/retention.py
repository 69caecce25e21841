"""Which files are still needed, and the job that deletes the others."""

import asyncio
import logging
from typing import Final

from messiahs.core.interface.messages import TaskState
from messiahs.core.state.module import ModuleState
from messiahs.daemon.transfer.arrivals import ArrivingFiles

UNUSED_SECONDS: Final = 3_600.0
"""A file that nothing names is kept for so long: a submit, or a transfer, may be about to name it."""
_PERIOD_SECONDS: Final = 600.0
_LOG = logging.getLogger(__name__)


def live_inputs(state: ModuleState) -> set[bytes]:
    """Name the inputs of submissions that have not ended and of attempts that run or wait here."""
    live = [one.row for one in state.origin.submissions.values() if one.row.ended_at is None]
    held = [row for row in state.executor.attempts.values() if row.status.state is TaskState.EXECUTING]
    inputs = [row.command.inputs for row in live] + [row.command.inputs for row in held]
    inputs += [own for row in live for own in row.member_inputs]
    return {one.sha256 for files in inputs for one in files}


async def collect_for_ever(
    arrivals: ArrivingFiles, state: ModuleState, *, period_seconds: float = _PERIOD_SECONDS
) -> None:
    """Delete what nobody needs at once and then after each `period_seconds`, until it is cancelled.

    What is needed follows from rows and from the ages of files, so no event says when to look. An error is logged, and
    the next look comes all the same.
    """
    while True:
        try:
            await _collect(arrivals, state)
        except Exception:  # noqa: BLE001 - whatever it is, files must not be kept for ever from then on
            _LOG.exception("files that no task needs could not be deleted; the next attempt follows")
        await asyncio.sleep(period_seconds)


async def _collect(arrivals: ArrivingFiles, state: ModuleState) -> None:
    await arrivals.forget_ended()
    deleted = await asyncio.to_thread(arrivals.files.collect, live_inputs(state), unused_seconds=UNUSED_SECONDS)
    if deleted:
        _LOG.info("%d files that no task needs were deleted", deleted)
