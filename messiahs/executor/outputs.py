"""Reading what a task wrote, from folders that the task's account can change at any moment."""

import os
import stat
from pathlib import Path

from messiahs.core.ids import AttemptId
from messiahs.errors import ExecutorError
from messiahs.executor.contract import OUTPUT_NAMES
from messiahs.executor.layout import ATTEMPTS, folder_name

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A task may put a pipe in the place of its log: O_NONBLOCK keeps the reader from waiting for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_output(attempts_root: Path, attempt: AttemptId, *, name: str, offset: int, limit: int) -> bytes:
    """Read at most `limit` bytes of a log from `offset`; empty at its end, which may still move.

    No link is followed on the way, and only a regular file of the account that owns the root is read: the reader may
    be root. Raises `ExecutorError`.
    """
    assert name in OUTPUT_NAMES, name
    opened: list[int] = []
    try:
        opened.append(os.open(attempts_root, _FOLDER))
        for part, flags in ((ATTEMPTS, _FOLDER), (folder_name(attempt), _FOLDER), (name, _FILE)):
            opened.append(os.open(part, flags, dir_fd=opened[-1]))
        found, owner = os.fstat(opened[-1]), os.fstat(opened[0]).st_uid
        if not stat.S_ISREG(found.st_mode) or found.st_uid != owner:
            raise ExecutorError(f"{name} of {attempt} is no longer the file that its task wrote", transient=False)
        return os.pread(opened[-1], limit, offset)
    except FileNotFoundError:
        raise ExecutorError(f"{name} of {attempt} is not here (any more)", transient=False) from None
    except OSError as error:
        raise ExecutorError(f"{name} of {attempt} cannot be read: {error.strerror}", transient=True) from error
    finally:
        for file in opened:
            os.close(file)
