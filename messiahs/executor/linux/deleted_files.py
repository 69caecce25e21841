"""Files without a name that processes keep open or mapped: they take a disk, and no walk through folders finds them."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import Final

_BLOCK_BYTES: Final = 512
_WHERE: Final = (b"fd", b"map_files")
"""Folders of a process in /proc with a link to each file that it has open, and to each one that it has mapped."""


def deleted_sizes(processes: Iterable[bytes], devices: Collection[int]) -> Iterator[int]:
    """Yield, for each file that processes have open or mapped, its bytes on these disks if it has no name, else 0.

    A file counts once, however many have it. What this process may not look at is left out: mapped files without
    CAP_SYS_ADMIN, and processes that are not dumpable without CAP_SYS_PTRACE. So is a file that is only on its way
    from one process to another, in a socket.
    """
    seen: set[tuple[int, int]] = set()
    for process in processes:
        for where in _WHERE:
            for found in _files_in(b"/proc/%s/%s" % (process, where)):
                key = found.st_dev, found.st_ino
                is_deleted = stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev in devices
                yield found.st_blocks * _BLOCK_BYTES if is_deleted and key not in seen else 0
                if is_deleted:
                    seen.add(key)


def _files_in(folder: bytes) -> Iterator[os.stat_result]:
    try:
        links = os.listdir(folder)  # noqa: PTH208 - names, not paths
    except OSError:
        return
    for link in links:
        try:
            yield os.stat(folder + b"/" + link)  # noqa: PTH116 - as above
        except PermissionError:
            return
        except OSError:
            # It was closed meanwhile.
            continue
