"""Counting what is below folders that a task may change meanwhile: by descriptors, along no link, in bounded work."""

import os
import stat
from collections.abc import Generator
from contextlib import suppress
from itertools import chain, islice
from typing import Final

DEPTH: Final = 100
"""Maximum depth of folders within one of a task; a walk takes two descriptors for each."""
FILES: Final = 1 << 20
"""Maximum number of files, folders and links of a task."""
LEAST_BYTES: Final = 4096
"""What each of them counts as at least: also an empty one takes an inode, of which a disk has a number."""
_BLOCK_BYTES: Final = 512
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Walk:
    """The sum of what is below some folders (mutable); of a file with several names, each counts as a part of it.

    `problem` says why not everything can be counted; it is empty if that is possible.
    """

    def __init__(self, *folders: str, depth: int = DEPTH, most_files: int = FILES) -> None:
        self.used_bytes = self.files = 0
        self.problem = ""
        self._depth, self._most_files = depth, most_files
        self._sizes = chain.from_iterable(self._below(folder, None, 0) for folder in folders)

    def go_on(self, number: int) -> bool:
        """Count at most so many more files and folders; return whether the walk has ended."""
        sizes = list(islice(self._sizes, number))
        self.used_bytes += sum(sizes)
        self.files += len(sizes)
        if self.files > self._most_files:
            self.problem = f"it has more than {self._most_files} files"
        return bool(self.problem) or len(sizes) < number

    def _below(self, name: str, above: int | None, depth: int) -> Generator[int, None, None]:
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        except OSError:
            # It was removed or replaced meanwhile.
            return
        try:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    yield _used_by(entry)
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth == self._depth:
                        self.problem = f"its folders are nested more than {self._depth} deep"
                        return
                    yield from self._below(entry.name, folder, depth + 1)
        finally:
            os.close(folder)


def _used_by(entry: "os.DirEntry[str]") -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        # It was removed meanwhile.
        return 0
    names = 1 if stat.S_ISDIR(found.st_mode) else max(1, found.st_nlink)
    return max(LEAST_BYTES, found.st_blocks * _BLOCK_BYTES // names)
