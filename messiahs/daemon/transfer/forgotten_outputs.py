"""Deleting the large outputs of tasks that are forgotten: the small ones go with their rows."""

import asyncio
import logging
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.channel.jobs import Jobs
from messiahs.core.interface.rows import CountersRow, SubmissionRow
from messiahs.core.recovery import Remains

_LOG: Final = logging.getLogger(__name__)


class ForgottenOutputs:
    """Deletes the folders of submissions below `home`, one thread at a time (mutable). Belongs to the event loop.

    What a crash leaves is deleted at the next start.
    """

    def __init__(self, home: Path, jobs: Jobs) -> None:
        self._home, self._jobs = home, jobs
        self._waiting: list[int] = []
        self._is_deleting = False

    def delete(self, number: int) -> None:
        """Delete the outputs of the submission with a number, soon."""
        self._waiting.append(number)
        if not self._is_deleting:
            self._is_deleting = True
            self._jobs.begin(self._delete_waiting())

    def delete_left(self, remains: Remains) -> None:
        """Delete outputs of submissions that were stored once, and are no more.

        Nothing is deleted beside an older copy of the rows, which may have been put in place by mistake.
        """
        if remains.forgotten is not None:
            return
        stored = {row.id.number for row in remains.rows if isinstance(row, SubmissionRow)}
        given = max((row.submissions for row in remains.rows if isinstance(row, CountersRow)), default=0)
        for number in numbers_in(self._home):
            if number <= given and number not in stored:
                self.delete(number)

    async def _delete_waiting(self) -> None:
        try:
            while self._waiting:
                numbers, self._waiting = self._waiting, []
                await asyncio.to_thread(delete_outputs, self._home, numbers)
        finally:
            self._is_deleting = False


def delete_outputs(home: Path, numbers: Collection[int]) -> None:
    """Delete the outputs of submissions; some may have none."""
    for number in numbers:
        try:
            shutil.rmtree(home / str(number))
        except FileNotFoundError:
            continue
        except OSError as error:
            _LOG.warning("outputs of a forgotten task could not be deleted, and are tried again at a start: %s", error)


def numbers_in(home: Path) -> list[int]:
    """Return the numbers of the submissions that have outputs below a folder."""
    found: list[int] = []
    with suppress(FileNotFoundError):
        found.extend(int(path.name) for path in home.iterdir() if path.name.isascii() and path.name.isdecimal())
    return sorted(found)
