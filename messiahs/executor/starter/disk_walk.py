"""Counting what is below folders that a task may change meanwhile: by descriptors, along no link, in bounded work.

A task of the starter's own account can take away the permission to read or to pass a folder, and go on writing into
files in it that it has open. The walk gives this permission back: what nobody may look at would be free otherwise.
Files that its processes keep after their names were removed come last.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Final

from messiahs.executor.linux.deleted_files import deleted_sizes

DEPTH: Final = 100
"""Maximum depth of folders within one of a task; a walk takes two descriptors for each."""
FILES: Final = 1 << 20
"""Maximum number of files, folders and links of a task, and of files that its processes have open or mapped."""
LEAST_BYTES: Final = 4096
"""What each of them counts as at least: also an empty one takes an inode, of which a disk has a number."""
_BLOCK_BYTES: Final = 512
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors of what was removed or replaced meanwhile."""
_READABLE: Final = stat.S_IRUSR | stat.S_IXUSR


class Walk:
    """The sum of what is below some folders (mutable); of a file with several names, each counts as a part of it.

    Deleted files that `processes`, by their numbers in /proc, keep on the same disks count, too. `problem` says why not
    everything can be counted because of the task; it is empty if that is possible. `missed` says what else kept this
    walk from counting everything: then the sum is too small. `hiding` are processes that do not show what they have
    open. `open_folders` are those that it holds open between two
    pieces, with two descriptors each: one that is not walked to its end must be closed.
    """

    def __init__(
        self, *folders: str, depth: int = DEPTH, most_files: int = FILES, processes: Iterable[bytes] = ()
    ) -> None:
        self.used_bytes = self.files = self.open_folders = 0
        self.problem = self.missed = ""
        self.hiding: set[bytes] = set()
        self._depth, self._most_files = depth, most_files
        self._devices: set[int] = set()
        self._sizes = self._all(folders, processes)

    def go_on(self, number: int) -> bool:
        """Count at most so many more files and folders, or open files; return whether the walk has ended."""
        sizes = list(islice(self._sizes, number))
        self.used_bytes += sum(sizes)
        self.files += sum(size > 0 for size in sizes)
        if self.files > self._most_files:
            self.problem = f"it has more than {self._most_files} files"
        return bool(self.problem) or len(sizes) < number

    def close(self) -> None:
        """Close the folders that are open; nothing more is counted."""
        self._sizes.close()

    def _all(self, folders: Iterable[str], processes: Iterable[bytes]) -> Generator[int, None, None]:
        for folder in folders:
            yield from self._below(folder, None, 0)
        yield from self._deleted(processes)

    def _below(self, name: str, above: int | None, depth: int) -> Generator[int, None, None]:
        try:
            folder = _opened(name, above)
        except OSError as error:
            self._note(error)
            return
        if folder is None:
            return
        self.open_folders += 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    yield self._used_by(entry, folder)
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth == self._depth:
                        self.problem = f"its folders are nested more than {self._depth} deep"
                        return
                    yield from self._below(entry.name, folder, depth + 1)
        except OSError as error:
            self._note(error)
        finally:
            os.close(folder)
            self.open_folders -= 1

    def _used_by(self, entry: "os.DirEntry[str]", folder: int) -> int:
        try:
            found = _looked_at(entry, folder)
        except OSError as error:
            self._note(error)
            return 0
        self._devices.add(found.st_dev)
        names = 1 if stat.S_ISDIR(found.st_mode) else max(1, found.st_nlink)
        return max(LEAST_BYTES, found.st_blocks * _BLOCK_BYTES // names)

    def _deleted(self, processes: Iterable[bytes]) -> Iterator[int]:
        for number, size_bytes in enumerate(deleted_sizes(processes, self._devices, hiding=self.hiding)):
            if number == self._most_files:
                self.problem = f"its processes have more than {self._most_files} files open or mapped"
                return
            yield max(LEAST_BYTES, size_bytes) if size_bytes else 0

    def _note(self, error: OSError) -> None:
        if isinstance(error, PermissionError):
            self.problem = "one of its folders cannot be made readable"
        elif error.errno not in _GONE:
            self.missed = error.strerror or str(error)


def _opened(name: str, above: int | None) -> int | None:
    """Open a folder, made readable if it is this account's; None: it is another one's, which no task can have made."""
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        if above is not None:
            _make_readable(above)
    place = os.open(name, _PLACE, dir_fd=above)
    try:
        is_own = _make_readable(place)
    finally:
        os.close(place)
    return os.open(name, _FOLDER, dir_fd=above) if is_own else None


def _looked_at(entry: "os.DirEntry[str]", folder: int) -> os.stat_result:
    try:
        return entry.stat(follow_symlinks=False)
    except PermissionError:
        _make_readable(folder)
        return entry.stat(follow_symlinks=False)


def _make_readable(folder: int) -> bool:
    """Give its owner the permission to list and to pass a folder; return whether that is this account."""
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        return False
    # By this name, which also leads to a folder that was opened without the permission to read it.
    os.chmod(f"/proc/self/fd/{folder}", stat.S_IMODE(found.st_mode) | _READABLE)  # noqa: PTH101 - no path has it
    return True
