"""Reading outputs of tasks from folders that the tasks' account can change at any moment."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from messiahs.config.disk import read_sparsely
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.output_names import LOGS, STDERR
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import folder_name
from messiahs.executor.linux.file_changes import FileChanges, Watch
from messiahs.executor.protocol.bubblewrap_messages import MESSAGE_BYTES, is_from_bubblewrap
from messiahs.executor.protocol.layout import ATTEMPTS, WORK

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A task may replace its log with a pipe: O_NONBLOCK keeps the reader from waiting for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


_NO_LONGER = (errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.ENXIO, errno.EISDIR)
"""Errors for files that a task made permanently unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Outputs of attempts below `root`, written by tasks of `accounts`, ranges with their first and last number.

    A task with an account of the host has a work folder of that, in a folder of this process that no task can change.
    Tasks with `has_boxes` run in boxes of bubblewrap, which writes to the log of a task's errors until the task begins.
    """

    root: Path
    accounts: tuple[tuple[int, int], ...]
    has_boxes: bool = False

    def read_into(
        self, attempt: AttemptId, name: str, buffer: memoryview, /, *, offset: int, has_ended: bool = True
    ) -> int:
        """Fill a buffer from a log, or from a file in the work folder, and return the number of bytes; 0 at its end.

        Of an attempt that has not ended there may be nothing yet. What may be the words of its box waits for its end:
        then they are gone, or its own. Links are not followed, and only regular files of tasks' accounts are read,
        because the reader may be root; and logs of its own account in a folder that tasks cannot change, as they are
        until the task is started. Raises `ExecutorError`.
        """
        if not has_ended and not os.path.lexists(self.root / ATTEMPTS / folder_name(attempt)):
            return 0
        with self._file(attempt, name) as descriptor:
            count = read_sparsely(descriptor, buffer, offset=offset)
        may_be_of_box = self.has_boxes and not has_ended and name == STDERR and not offset
        return 0 if may_be_of_box and is_from_bubblewrap(bytes(buffer[: min(count, MESSAGE_BYTES)])) else count

    def watch(self, attempt: AttemptId, name: str, *, changes: FileChanges) -> Watch | None:
        """Watch what `read_into` reads; None if that is not there or not readable, or cannot be watched."""
        try:
            with self._file(attempt, name) as descriptor:
                return changes.watch(descriptor)
        except ExecutorError:
            return None

    @contextmanager
    def _file(self, attempt: AttemptId, name: str) -> Iterator[int]:
        folders, file = _way_to(name)
        opened: list[int] = []
        try:
            opened.append(self._opened())
            for folder in (folder_name(attempt), *folders):
                opened.append(os.open(folder, _FOLDER, dir_fd=opened[-1]))
            opened.append(os.open(file, _FILE, dir_fd=opened[-1]))
            found = os.fstat(opened[-1])
            is_own = not folders and found.st_uid == os.fstat(opened[-2]).st_uid == os.geteuid()
            is_known = is_own or self._is_of_a_task(found.st_uid) or found.st_uid == _owner_of_work(opened[1])
            if not stat.S_ISREG(found.st_mode) or not is_known:
                raise ExecutorError(f"{name} of {attempt} is no longer the file that its task wrote", transient=False)
            yield opened[-1]
        except FileNotFoundError:
            raise ExecutorError(f"{name} of {attempt} does not exist here (any more)", transient=False) from None
        except OSError as error:
            text = f"{name} of {attempt} cannot be read: {error.strerror}"
            raise ExecutorError(text, transient=error.errno not in _NO_LONGER) from error
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _is_of_a_task(self, uid: int) -> bool:
        return any(first <= uid <= last for first, last in self.accounts)

    def _opened(self) -> int:
        """Open the folder that all attempts share, even if a task of our own account has closed it."""
        attempts = self.root / ATTEMPTS
        try:
            return os.open(attempts, _FOLDER)
        except PermissionError:
            if self._is_of_a_task(os.geteuid()):
                for folder in (self.root, attempts):
                    folder.chmod(0o700)
            return os.open(attempts, _FOLDER)


def _owner_of_work(attempt: int) -> int | None:
    """Return whose work folder is in the open folder of an attempt; None if anybody else may have put it there."""
    found = os.fstat(attempt)
    is_own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    owner = os.stat(WORK, dir_fd=attempt, follow_symlinks=False).st_uid if is_own else None
    # Root is no task.
    return owner or None


def _way_to(name: str) -> tuple[list[str], str]:
    """Return the folders below that of the attempt, and the name of the file in the last of them."""
    *folders, file = name.split("/")
    is_work = folders[:1] == [WORK] and {"", ".", ".."}.isdisjoint((*folders, file)) and "\0" not in name
    if not is_work and name not in LOGS:
        raise ExecutorError(f"{name!r} is not an output of a task", transient=False)
    return folders, file
