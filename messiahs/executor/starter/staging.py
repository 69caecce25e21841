"""Copying inputs of a task to their places, so that changes by the task do not affect others.

The kernel copies, and shares blocks where the file system can. Holes stay holes. Links are created after all files, so
that no file is written through one.
"""

import errno
import os

from messiahs.core.model.folder_links import stays_inside
from messiahs.errors import CodecError
from messiahs.executor.attempt_values import Staged
from messiahs.wire.limits import relative_path

INLINE_BYTES, INLINE_FILES = 256 << 10, 16
"""Up to this size the starter copies itself; the task's own process copies more before it becomes the task."""
_COPY_BYTES = 64 << 20
_READ_BYTES = 1 << 20
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_TARGET = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)


class StagingError(Exception):
    """An input cannot be copied; the text says which and why."""


def is_quick(inputs: tuple[Staged, ...]) -> bool:
    """Whether copying takes no longer than starting a process."""
    return len(inputs) <= INLINE_FILES and sum(one.size_bytes for one in inputs) <= INLINE_BYTES


def stage(inputs: tuple[Staged, ...]) -> None:
    """Copy inputs into the working directory. Raises `StagingError`."""
    made: set[str] = set()
    for one in sorted(inputs, key=lambda one: bool(one.link_target)):
        try:
            _place(one, made)
        except CodecError as error:
            raise StagingError(f"input {one.name!r} leads out of the working directory") from error
        except OSError as error:
            raise StagingError(f"input {one.name}: {error.strerror}") from error
        except ValueError as error:
            raise StagingError(f"input {one.name!r}: {error}") from error


def _place(staged: Staged, made: set[str]) -> None:
    """Put an input in its place; the folders `made` exist."""
    # The wire has checked the name, and the tasks' account writes the file.
    relative_path(staged.name)
    folder = staged.name if staged.is_folder else staged.name.rpartition("/")[0]
    if folder and folder not in made:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - once per folder of a task
        made.add(folder)
    if staged.link_target:
        if not stays_inside(staged.name, staged.link_target):
            raise StagingError(f"input {staged.name!r} is a link that leads out of the working directory")
        os.symlink(staged.link_target, staged.name)  # noqa: PTH211 - strings, as above
    elif not staged.is_folder:
        _copy(staged)


def _copy(staged: Staged) -> None:
    source = os.open(staged.source, _SOURCE)
    try:
        found = os.fstat(source)
        if found.st_size != staged.size_bytes:
            raise StagingError(f"input {staged.name} does not have its {staged.size_bytes} bytes")
        target = os.open(staged.name, _TARGET, 0o755 if staged.is_executable else 0o644)
        try:
            if found.st_blocks * 512 < found.st_size:
                _copy_sparsely(source, target, staged.size_bytes)
            else:
                _copy_content(source, target, staged.size_bytes)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_sparsely(source: int, target: int, size: int) -> None:
    """Copy only what is not a hole."""
    os.ftruncate(target, size)
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            # The rest is a hole.
            return
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        _copy_content(source, target, end - start)


def _copy_content(source: int, target: int, size: int) -> None:
    left = size
    try:
        while left and (copied := os.copy_file_range(source, target, min(left, _COPY_BYTES))):
            left -= copied
    except OSError as error:
        if error.errno not in _CANNOT_COPY or left != size:
            raise
    while left and (piece := os.read(source, min(left, _READ_BYTES))):
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]
        left -= len(piece)
    if left:
        raise OSError(errno.EIO, "the file ended early")
