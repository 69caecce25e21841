"""Declared outputs of a task, as they are when none of its processes remains.

A process outside of the sandbox that got the open work folder from the task can still exchange everything in it, at any
moment. So what is looked at, read and changed is always one open file, never a name twice.

Links are not followed, because their targets may not be the task's to give away: a link that stays inside the working
directory is an output itself.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from messiahs.core.interface.causes import Cause
from messiahs.core.model.folder_links import stays_inside
from messiahs.core.model.output_names import DEPTH_LIMIT, Pattern, States, is_pattern, listed, missing_text
from messiahs.core.model.texts import has_control
from messiahs.errors import CodecError
from messiahs.executor.attempt_values import Left
from messiahs.executor.protocol.layout import WORK
from messiahs.wire.limits import FILE_LIMIT, relative_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens everything, a link too, and reads nothing."""
ENTRY_LIMIT = 16_384
"""Maximum number of files and folders that are searched for the outputs of an attempt."""
_NAMES_LIMIT_BYTES = 64 << 10
"""Maximum length of all names and targets of links together: every status of the attempt carries them."""
_SHOWN = 5
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: f"more than {DEPTH_LIMIT} folders deep",
}


class _TooManyError(Exception):
    """There are more files than a status can carry, or than are searched."""


@dataclass(slots=True)
class Found:
    """Outputs that were found, by name, names that were not, and what was omitted (mutable)."""

    uid: int = -1
    """The account that wrote them."""
    files: dict[str, Left] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    first_omitted: list[str] = field(default_factory=list)
    """The first omitted names, each with the reason: a link of each entry would be much memory."""
    omitted_count: int = 0
    cause: Cause = Cause.NONE
    names_bytes: int = 0
    entries: int = 0

    def omit(self, name: str, problem: str) -> None:
        """Count an omitted file, and keep its name and the reason if it is one of the first."""
        self.omitted_count += 1
        if len(self.first_omitted) < _SHOWN:
            self.first_omitted.append(f"{name} ({problem})")

    @property
    def text(self) -> str:
        """Return what is missing or was omitted."""
        texts = []
        if self.entries > ENTRY_LIMIT:
            texts.append(
                f"more than {ENTRY_LIMIT} files and folders were searched for its outputs: "
                "declare them more precisely, or pack them with tar"
            )
        elif self.cause == Cause.TOO_MANY_OUTPUTS:
            texts.append(
                f"its outputs are more than {FILE_LIMIT} files, or their names are too long: pack them with tar"
            )
        if self.missing:
            texts.append(missing_text(self.missing))
        if self.omitted_count:
            texts.append(f"omitted: {listed(self.first_omitted, self.omitted_count)}")
        return "; ".join(texts)


def find_outputs(work: str, declared: tuple[str, ...], *, uid: int | None = None) -> Found:
    """Find every declared file, link and folder in a work folder; a folder stands for everything in it.

    All must belong to the account `uid`; None: that of this process.
    """
    found = Found(uid=os.geteuid() if uid is None else uid)
    for name in declared:
        try:
            if not _add_declared(found, work, name) and not (is_pattern(name) and _add_matching(found, work, name)):
                found.missing.append(name)
        except _TooManyError:
            found.cause = Cause.TOO_MANY_OUTPUTS
            break
    if found.missing:
        found.cause = found.cause or Cause.OUTPUT_MISSING
    return found


def _add_declared(found: Found, work: str, name: str) -> bool:
    """Add a declared output; False if it does not exist or is omitted, or its name leads out of the work folder."""
    if _problem_of_name(name):
        return False
    *folders, last = name.split("/")
    try:
        with _opened(work, folders) as folder:
            return _add(found, folder, last, path=name, depth=0)
    except (OSError, ValueError):
        return False


def _add_matching(found: Found, work: str, text: str) -> bool:
    """Add everything that matches a pattern; False if that is nothing, or the work folder cannot be read."""
    pattern = Pattern(text)
    try:
        with _opened(work, []) as folder:
            return _search(found, folder, pattern, states=pattern.start, above="")
    except OSError:
        return False


@contextmanager
def _opened(work: str, folders: list[str]) -> Iterator[int]:
    opened = [os.open(work, _FOLDER)]
    try:
        for folder in folders:
            opened.append(os.open(folder, _FOLDER, dir_fd=opened[-1]))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _search(found: Found, folder: int, pattern: Pattern, *, states: States, above: str) -> bool:
    """Add what matches in a folder and below it; the path of its content begins with `above`."""
    name = pattern.only_name(states)
    is_found = False
    for entry in _entries_of(found, folder) if name is None else [name]:
        following = pattern.step(states, entry)
        if pattern.has_matched(following):
            is_found |= _add_below(found, folder, entry, path=above + entry, depth=0)
        elif following and above.count("/") < DEPTH_LIMIT:
            _count(found)
            # Files and links have nothing below.
            with suppress(OSError), _opened_below(entry, folder) as below:
                is_found |= _search(found, below, pattern, states=following, above=f"{above}{entry}/")
    return is_found


@contextmanager
def _opened_below(entry: str, folder: int, how: int = _FOLDER) -> Iterator[int]:
    descriptor = os.open(entry, how, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _add(found: Found, folder: int, entry: str, *, path: str, depth: int) -> bool:
    """Add a file, a link, or everything in a folder, and the folder itself if that is nothing; False if omitted."""
    _count(found)
    with _opened_below(entry, folder, _ITSELF) as itself:
        status = os.fstat(itself)
        problem = _problem_of_name(path) or ("" if status.st_uid == found.uid else "it belongs to another account")
        if problem:
            found.omit(path, problem)
            return False
        if stat.S_ISDIR(status.st_mode) and depth < DEPTH_LIMIT:
            _add_folder(found, itself, path=path, depth=depth)
        elif stat.S_ISREG(status.st_mode):
            _make_readable(itself, status)
            _note(found, Left(path, status.st_size, bool(status.st_mode & stat.S_IXUSR)))
        elif stat.S_ISLNK(status.st_mode):
            return _add_link(found, path, os.readlink("", dir_fd=itself))
        else:
            found.omit(path, _KINDS.get(stat.S_IFMT(status.st_mode), "of an unknown type"))
            return False
        return True


def _add_folder(found: Found, itself: int, *, path: str, depth: int) -> None:
    # Its name may lead to another one by now. Of each folder on the way, one file is open.
    readable = os.open(f"/proc/self/fd/{itself}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.dup2(readable, itself, inheritable=False)
    os.close(readable)
    added = [
        _add_below(found, itself, below, path=f"{path}/{below}", depth=depth + 1)
        for below in _entries_of(found, itself)
    ]
    if not any(added):
        _note(found, Left(path, 0, is_executable=False, is_folder=True))


def _make_readable(file: int, status: os.stat_result) -> None:
    """Let the owner of a file read it, if that is this account; a daemon that is root reads every file."""
    if status.st_uid == os.geteuid() and not status.st_mode & stat.S_IRUSR:
        os.chmod(f"/proc/self/fd/{file}", stat.S_IMODE(status.st_mode) | stat.S_IRUSR)  # noqa: PTH101 - not its name


def _add_link(found: Found, path: str, target: str) -> bool:
    if not stays_inside(path, target):
        found.omit(path, f"a link to {target}, out of the working directory")
        return False
    if not _is_unicode(target) or has_control(target):
        found.omit(path, "a link whose target is not UTF-8 or has control characters")
        return False
    _note(found, Left(path, 0, is_executable=False, link_target=target))
    return True


def _add_below(found: Found, folder: int, entry: str, *, path: str, depth: int) -> bool:
    try:
        return _add(found, folder, entry, path=path, depth=depth)
    except FileNotFoundError:
        return False
    except OSError as error:
        found.omit(path, str(error.strerror))
        return False


def _entries_of(found: Found, folder: int) -> list[str]:
    left = ENTRY_LIMIT - found.entries
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, left + 1)]
    if len(names) > left:
        found.entries = ENTRY_LIMIT + 1
        raise _TooManyError
    return sorted(names)


def _count(found: Found) -> None:
    found.entries += 1
    if found.entries > ENTRY_LIMIT:
        raise _TooManyError


def _note(found: Found, left: Left) -> None:
    if left.name in found.files:
        return
    found.names_bytes += len(left.name.encode()) + len(left.link_target.encode())
    if len(found.files) >= FILE_LIMIT or found.names_bytes > _NAMES_LIMIT_BYTES:
        raise _TooManyError
    found.files[left.name] = left


def _problem_of_name(path: str) -> str:
    if not _is_unicode(path):
        return "its name is not UTF-8"
    try:
        relative_path(f"{WORK}/{path}")
    except CodecError:
        return "its name is too long, or has control characters"
    return ""


def _is_unicode(text: str) -> bool:
    # Bytes that are not UTF-8 are lone surrogates here.
    return not any("\ud800" <= character <= "\udfff" for character in text)
