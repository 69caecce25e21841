"""Files without a name that processes keep open or mapped: they take a disk, and no walk through folders finds them."""

import os
import stat
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Final

from messiahs.executor.linux.file_tables import FileTables
from messiahs.executor.linux.processes import standing_of

_BLOCK_BYTES: Final = 512
_ENDED: Final = (b"Z", b"X")


def deleted_sizes(
    processes: Iterable[bytes], devices: Collection[int], *, hiding: set[bytes] | None = None
) -> Iterator[int]:
    """Yield, for each file that processes have open or mapped, its bytes on these disks if it has no name, else 0.

    Each thread yields 0, too: it takes time. A file counts once, however many have it. What this process may not look
    at is left out: mapped files without CAP_SYS_ADMIN, and processes that are not dumpable without CAP_SYS_PTRACE. So
    is a file that is only on its way from one process to another, in a socket. Processes that do not let this one see
    what they have open are added to `hiding`; one that just begins to execute a program, or ends, may be among them.
    """
    seen: set[tuple[int, int]] = set()
    tables = FileTables()
    for process in processes:
        tables.begin()
        for found in _files_of(process, tables, set() if hiding is None else hiding):
            if found is None:
                yield 0
                continue
            key = found.st_dev, found.st_ino
            is_deleted = stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev in devices
            yield found.st_blocks * _BLOCK_BYTES if is_deleted and key not in seen else 0
            if is_deleted:
                seen.add(key)


def _files_of(process: bytes, tables: FileTables, hiding: set[bytes]) -> Iterator[os.stat_result | None]:
    """Yield the files that the threads of a process have open, and those that it has mapped; None for each thread.

    A thread can have a table of files of its own. One that has ended shows no files, although others run on.
    """
    has_mapped = False
    for thread in _names_in(b"/proc/%s/task" % process):
        yield None
        name = b"%s/task/%s" % (process, thread)
        if tables.is_new(name):
            is_refused = yield from _files_in(b"/proc/%s/fd" % name)
            # One that has ended shows nothing, and has nothing open.
            if is_refused and (standing := standing_of(name)) is not None and standing.state not in _ENDED:
                hiding.add(process)
        mapped = b"/proc/%s/map_files" % thread
        if not has_mapped and _has_names(mapped):
            has_mapped = True
            yield from _files_in(mapped)


def _names_in(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def _has_names(folder: bytes) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _files_in(folder: bytes) -> Generator[os.stat_result, None, bool]:
    """Yield what the links in a folder lead to, and return whether this process may not look at them.

    They are never listed all at once: a process may have a million.
    """
    try:
        with os.scandir(folder) as entries:
            for link in entries:
                try:
                    yield link.stat()
                except PermissionError:
                    return True
                except OSError:
                    # It was closed meanwhile.
                    continue
    except PermissionError:
        return True
    except OSError:
        # The process has ended.
        pass
    return False
