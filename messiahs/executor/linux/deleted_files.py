"""Files without a name that processes keep open or mapped: they take a disk, and no walk through folders finds them."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import Final

_BLOCK_BYTES: Final = 512


def deleted_sizes(processes: Iterable[bytes], devices: Collection[int]) -> Iterator[int]:
    """Yield, for each file that processes have open or mapped, its bytes on these disks if it has no name, else 0.

    A file counts once, however many have it. What this process may not look at is left out: mapped files without
    CAP_SYS_ADMIN, and processes that are not dumpable without CAP_SYS_PTRACE. So is a file that is only on its way
    from one process to another, in a socket.
    """
    seen: set[tuple[int, int]] = set()
    for process in processes:
        for found in _files_of(process):
            key = found.st_dev, found.st_ino
            is_deleted = stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev in devices
            yield found.st_blocks * _BLOCK_BYTES if is_deleted and key not in seen else 0
            if is_deleted:
                seen.add(key)


def _files_of(process: bytes) -> Iterator[os.stat_result]:
    """Yield the files that the threads of a process have open, and those that it has mapped.

    A thread can have a table of files of its own. One that has ended shows no files, although others run on.
    """
    threads = _names_in(b"/proc/%s/task" % process)
    for thread in threads:
        yield from _files_in(b"/proc/%s/task/%s/fd" % (process, thread))
    mapped = (b"/proc/%s/map_files" % thread for thread in threads)
    yield from _files_in(next(filter(_names_in, mapped), b""))


def _names_in(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def _files_in(folder: bytes) -> Iterator[os.stat_result]:
    for link in _names_in(folder):
        try:
            yield os.stat(folder + b"/" + link)  # noqa: PTH116 - as above
        except PermissionError:
            return
        except OSError:
            # It was closed meanwhile.
            continue
