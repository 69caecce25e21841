"""Walking the files and folders that a user gives to a task.

What a user names is followed if it is a link. Inside a folder nothing is: links stay links, and a part of a path that
becomes a link while the folder is read is an error, so that nobody can exchange it for a file from elsewhere.
"""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import BinaryIO, Final

from messiahs.config.regular_files import open_regular
from messiahs.core.model.folder_links import stays_inside
from messiahs.core.model.task_files import DESCRIPTION_LIMIT_BYTES, ENTRY_BYTES, entry_bytes
from messiahs.core.model.texts import has_control, printable
from messiahs.errors import OptionValueError

DEPTH_LIMIT = 255
"""Maximum number of folders in which an input may be."""
IGNORE_FILE: Final = ".messiahsignore"
"""Names what a folder keeps for itself, in the notation of git."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Walked:
    """A file, a link with its target, or an empty folder at the path `below` in a source (empty: the source itself)."""

    source: str
    below: str
    size_bytes: int = 0
    link_target: str = ""
    is_folder: bool = False

    @property
    def path(self) -> str:
        """The path as the user would write it."""
        return _path_in(self.source, self.below) if self.below else self.source

    @property
    def is_file(self) -> bool:
        """Whether it has a content."""
        return not self.link_target and not self.is_folder


def walked(source: str) -> tuple[Walked, ...]:
    """Return everything in a file or folder, sorted by name. Raises `OSError`, `ValueError` and `OptionValueError`.

    What the `.messiahsignore` of a folder names is left out, and so is that file. An `OptionValueError` names what
    cannot be an input: links that lead outside, pipes and devices, and more files than can be described.
    """
    found = os.stat(source)  # noqa: PTH116 - for each input
    if stat.S_ISREG(found.st_mode):
        return (Walked(source, "", found.st_size),)
    if not stat.S_ISDIR(found.st_mode):
        raise _neither(source)
    entries: list[Walked] = []
    size = 0
    with _opened(source, _FOLDER) as folder:
        for entry in _in_folder(source, "", folder, depth=0, is_ignored=_ignored(source, folder)):
            entries.append(entry)
            size += entry_bytes(entry.below, entry.link_target)
            if size > DESCRIPTION_LIMIT_BYTES:
                raise too_many(source)
    return tuple(entries)


def open_walked(walked: Walked) -> BinaryIO:
    """Open a file for reading, unbuffered; raises `OSError` if a part of its path inside the source is a link now."""
    if not walked.below:
        return open_regular(walked.source)
    *folders, name = walked.below.split("/")
    opened = os.open(walked.source, _FOLDER)
    try:
        for part in folders:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inner
        # It closes what it cannot read, such as a folder.
        file = io.FileIO(name, opener=lambda name, _: os.open(name, _FILE, dir_fd=opened))
    finally:
        os.close(opened)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _neither(walked.path)
    return file


def unreadable(path: str, error: OSError | ValueError) -> OptionValueError:
    """Return the error for a file or folder that cannot be read."""
    if isinstance(error, OSError):
        return OptionValueError(f"the input `{path}` cannot be read: {error.strerror}")
    return OptionValueError(f"the input `{path!r}` cannot be read: {error}")


def too_many(source: str) -> OptionValueError:
    """Return the error for a task with more inputs than can be described."""
    what = f"their names, targets of links, and {ENTRY_BYTES} bytes for each"
    return OptionValueError(
        f"the inputs of a task take at most {DESCRIPTION_LIMIT_BYTES} bytes to describe ({what}), and `{source}` "
        "brings more: pack it with tar, which makes one input of it"
    )


def _ignored(source: str, folder: int) -> Callable[[str], bool]:
    """Return what says of a path in a folder whether it is left out; the paths of folders end with a slash."""
    path = _path_in(source, IGNORE_FILE)
    try:
        with _opened(IGNORE_FILE, _FILE, folder) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OptionValueError(f"`{path}` is no file: it has patterns of what is left out, one in each line")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                content = file.read()
    except FileNotFoundError:
        return lambda _: False
    except OSError as error:
        raise unreadable(path, error) from error
    return _patterns(path, content)


def _patterns(path: str, content: bytes) -> Callable[[str], bool]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - most folders have no such file

    try:
        lines = list(StringIO(content.decode(), newline=None))
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise OptionValueError(f"`{path}`, line {number}: it is not UTF-8") from error
    for number, line in enumerate(lines, start=1):
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error) as error:
            raise OptionValueError(f"`{path}`, line {number}: `{printable(line.strip())}` is no pattern") from error
    return GitIgnoreSpec.from_lines([*lines, f"/{IGNORE_FILE}"]).match_file


def _in_folder(
    source: str, above: str, folder: int, *, depth: int, is_ignored: Callable[[str], bool]
) -> Iterator[Walked]:
    if depth > DEPTH_LIMIT:
        raise OptionValueError(f"the input `{_path_in(source, above)}` is more than {DEPTH_LIMIT} folders deep")
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    is_empty = True
    for entry in entries:
        name = above + entry.name
        found = entry.stat(follow_symlinks=False)
        if is_ignored(f"{name}/" if stat.S_ISDIR(found.st_mode) else name):
            continue
        is_empty = False
        if stat.S_ISREG(found.st_mode):
            yield Walked(source, name, found.st_size)
        elif stat.S_ISLNK(found.st_mode):
            yield Walked(source, name, link_target=_target(source, name, os.readlink(entry.name, dir_fd=folder)))
        elif stat.S_ISDIR(found.st_mode):
            try:
                inner = os.open(entry.name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                raise unreadable(_path_in(source, name), error) from error
            try:
                yield from _in_folder(source, f"{name}/", inner, depth=depth + 1, is_ignored=is_ignored)
            finally:
                os.close(inner)
        else:
            raise _neither(_path_in(source, name))
    if is_empty:
        yield Walked(source, above.rstrip("/"), is_folder=True)


def _target(source: str, name: str, target: str) -> str:
    path = _path_in(source, name)
    if not stays_inside(name, target):
        raise OptionValueError(
            f"the input `{path}` is a link to `{printable(target)}`, and only relative links that stay inside "
            f"`{source}` can be sent: give what it points to as an input of its own, or copy it (`cp -rL`)"
        )
    if has_control(target) or any("\ud800" <= letter <= "\udfff" for letter in target):
        raise OptionValueError(f"the target of the link `{path}` is not UTF-8, or has control characters")
    return target


@contextmanager
def _opened(path: str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _neither(path: str) -> OptionValueError:
    return OptionValueError(f"the input `{path}` is neither a file nor a folder")


def _path_in(source: str, below: str) -> str:
    """Return the path of something in a source, as the user would write it."""
    return os.path.join(source, below)  # noqa: PTH118 - for each input
