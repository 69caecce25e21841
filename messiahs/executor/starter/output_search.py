"""The search for the declared outputs of a task, as they are when none of its processes remains, a little at a time.

Everything else waits for each piece of it, so every entry of every folder that is read is a step, and counts.

A process outside of the sandbox that got the open work folder from the task can still exchange everything in it, at any
moment. So what is looked at, read and changed is always one open file, never a name twice.

Links are not followed, because their targets may not be the task's to give away: a link that stays inside the working
directory is an output itself.
"""

import os
import stat
from bisect import insort
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from messiahs.core.interface.causes import Cause
from messiahs.core.model.folder_links import stays_inside
from messiahs.core.model.output_names import DEPTH_LIMIT, NAMES_LIMIT_BYTES, is_pattern, listed, missing_text
from messiahs.core.model.path_patterns import PathPatterns, States
from messiahs.core.model.texts import has_control, printable
from messiahs.errors import CodecError
from messiahs.executor.attempt_values import Left
from messiahs.executor.protocol.layout import WORK
from messiahs.wire.limits import FILE_LIMIT, relative_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens everything, a link too, and reads nothing."""
ENTRY_LIMIT = 16_384
"""Maximum number of files and folders that are searched for the outputs of an attempt, matched or not."""
FOLDER_LIMIT_BYTES = 16 << 20
"""Maximum size of a folder itself: some file systems read all that it ever held, also when nothing is left in it."""
_SHOWN = 5
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: f"more than {DEPTH_LIMIT} folders deep",
}


_Search = Generator[None, None, bool]
"""A part of the search, which pauses at each entry; it returns whether something was found."""


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
    """The first omitted names in order, each with the reason: a link of each entry would be much memory."""
    omitted_count: int = 0
    cause: Cause = Cause.NONE
    names_bytes: int = 0
    entries: int = 0
    large_folder: str = ""
    """A folder that takes too long to read; empty if there is none."""

    def omit(self, name: str, problem: str) -> None:
        """Count an omitted file, and keep its name and the reason if it is one of the first."""
        self.omitted_count += 1
        insort(self.first_omitted, f"{name} ({problem})")
        del self.first_omitted[_SHOWN:]

    @property
    def text(self) -> str:
        """Return what is missing or was omitted."""
        texts = []
        if self.large_folder:
            texts.append(
                f"its folder {self.large_folder} had so many files that it takes more than "
                f"{FOLDER_LIMIT_BYTES >> 20} MiB itself, and is not searched: leave its outputs in another one"
            )
        elif self.entries > ENTRY_LIMIT:
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


class OutputSearch:
    """A search in a work folder for every declared file, link and folder; a folder is everything in it (mutable).

    All must belong to the account `uid`; None: that of this process. `found` is complete when the search has ended. It
    holds up to two folders open for each level between two pieces, so one that is given up must be closed.
    """

    def __init__(self, work: str, declared: tuple[str, ...], *, uid: int | None = None) -> None:
        self.found = Found(uid=os.geteuid() if uid is None else uid)
        self._work, self._declared = work, declared
        self._place = 0
        """The place of the declared name that is sought; all patterns come last, together."""
        self._places: dict[str, int] = {}
        """The place of the declared name by which each output was found."""
        self._steps = self._bounded()

    def go_on(self, number: int) -> bool:
        """Look at up to so many more entries; return whether the search has ended."""
        return sum(1 for _ in islice(self._steps, number)) < number

    def close(self) -> None:
        """Close the folders that are open; nothing more is found."""
        self._steps.close()

    def _bounded(self) -> Generator[None, None, None]:
        found, places = self.found, self._places
        try:
            yield from self._all()
        except _TooManyError:
            found.cause = Cause.TOO_MANY_OUTPUTS
        if found.missing:
            found.cause = found.cause or Cause.OUTPUT_MISSING
        found.files = {name: found.files[name] for name in sorted(found.files, key=lambda name: (places[name], name))}

    def _all(self) -> Generator[None, None, None]:
        patterns: list[str] = []
        missing: set[str] = set()
        for place, name in enumerate(self._declared):
            self._place = place
            if not (yield from self._add_declared(name)):
                is_sought = is_pattern(name) and not _problem_of_name(name)
                (patterns.append if is_sought else missing.add)(name)
        self._place = len(self._declared)
        if patterns:
            missing |= yield from self._missing_patterns(patterns)
        self.found.missing += (name for name in self._declared if name in missing)

    def _add_declared(self, name: str) -> _Search:
        """Add a declared output; False if it does not exist or is omitted, or its name leads out of the work folder."""
        yield
        if _problem_of_name(name):
            return False
        *folders, last = name.split("/")
        try:
            with _opened(self._work, folders) as folder:
                return (yield from self._add(folder, last, path=name, depth=0))
        except (OSError, ValueError):
            return False

    def _missing_patterns(self, patterns: list[str]) -> Generator[None, None, set[str]]:
        """Add everything that matches a pattern; return the patterns for which that is nothing."""
        matching = _Matching(PathPatterns(patterns))
        try:
            with _opened(self._work, []) as folder:
                yield from self._search(folder, matching, states=matching.patterns.start, above="")
        except OSError:
            # The work folder cannot be read.
            pass
        numbers = matching.patterns.numbers(matching.found)
        return {pattern for number, pattern in enumerate(patterns) if number not in numbers}

    def _search(self, folder: int, matching: "_Matching", *, states: States, above: str) -> Generator[None, None, None]:
        """Add what matches in a folder and below it; the path of its content begins with `above`."""
        patterns = matching.patterns
        names = patterns.only_names(states)
        if names is None:
            names = yield from self._entries_of(folder, above.rstrip("/"))
        else:
            for _ in names:
                self._count()
        for entry in names:
            yield
            following = patterns.step(states, entry)
            matched = patterns.matched(following)
            if matched:
                if (yield from self._add_below(folder, entry, path=above + entry, depth=0)):
                    matching.found |= matched
                following = patterns.without(following, matched)
            following = patterns.below(following)
            if following and above.count("/") < DEPTH_LIMIT:
                try:
                    with _opened_below(entry, folder) as below:
                        yield from self._search(below, matching, states=following, above=f"{above}{entry}/")
                except OSError:
                    # Files and links have nothing below.
                    continue

    def _add(self, folder: int, entry: str, *, path: str, depth: int) -> _Search:
        """Add a file, a link, or all in a folder, and the folder itself if that is nothing; False if omitted."""
        found = self.found
        with _opened_below(entry, folder, _ITSELF) as itself:
            status = os.fstat(itself)
            problem = _problem_of_name(path) or ("" if status.st_uid == found.uid else "it belongs to another account")
            if problem:
                found.omit(path, problem)
                return False
            if stat.S_ISDIR(status.st_mode) and depth < DEPTH_LIMIT:
                yield from self._add_folder(itself, path=path, depth=depth)
            elif stat.S_ISREG(status.st_mode):
                _make_readable(itself, status)
                self._note(Left(path, status.st_size, bool(status.st_mode & stat.S_IXUSR)))
            elif stat.S_ISLNK(status.st_mode):
                return self._add_link(path, os.readlink("", dir_fd=itself))
            else:
                found.omit(path, _KINDS.get(stat.S_IFMT(status.st_mode), "of an unknown type"))
                return False
            return True

    def _add_folder(self, itself: int, *, path: str, depth: int) -> Generator[None, None, None]:
        # Its name may lead to another one by now. Of each folder on the way, one file is open.
        readable = os.open(f"/proc/self/fd/{itself}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.dup2(readable, itself, inheritable=False)
        os.close(readable)
        is_empty = True
        for below in (yield from self._entries_of(itself, path)):
            yield
            if (yield from self._add_below(itself, below, path=f"{path}/{below}", depth=depth + 1)):
                is_empty = False
        if is_empty:
            self._note(Left(path, 0, is_executable=False, is_folder=True))

    def _add_link(self, path: str, target: str) -> bool:
        if not stays_inside(path, target):
            self.found.omit(path, f"a link to {target}, out of the working directory")
            return False
        if not _is_unicode(target) or has_control(target):
            self.found.omit(path, "a link whose target is not UTF-8 or has control characters")
            return False
        self._note(Left(path, 0, is_executable=False, link_target=target))
        return True

    def _add_below(self, folder: int, entry: str, *, path: str, depth: int) -> _Search:
        try:
            return (yield from self._add(folder, entry, path=path, depth=depth))
        except FileNotFoundError:
            return False
        except OSError as error:
            self.found.omit(path, str(error.strerror))
            return False

    def _entries_of(self, folder: int, path: str) -> Generator[None, None, list[str]]:
        names: list[str] = []
        if os.fstat(folder).st_size > FOLDER_LIMIT_BYTES:
            self.found.large_folder = printable(path or ".")
            raise _TooManyError
        with os.scandir(folder) as entries:
            for entry in entries:
                self._count()
                names.append(entry.name)
                yield
        return names

    def _count(self) -> None:
        self.found.entries += 1
        if self.found.entries > ENTRY_LIMIT:
            raise _TooManyError

    def _note(self, left: Left) -> None:
        found = self.found
        if left.name in found.files:
            return
        found.names_bytes += len(left.name.encode()) + len(left.link_target.encode())
        if len(found.files) >= FILE_LIMIT or found.names_bytes > NAMES_LIMIT_BYTES:
            raise _TooManyError
        found.files[left.name], self._places[left.name] = left, self._place


@dataclass(slots=True)
class _Matching:
    """Patterns, and the ends of those for which something was found (mutable)."""

    patterns: PathPatterns
    found: States = 0


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


@contextmanager
def _opened_below(entry: str, folder: int, how: int = _FOLDER) -> Iterator[int]:
    descriptor = os.open(entry, how, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make_readable(file: int, status: os.stat_result) -> None:
    """Let the owner of a file read it, if that is this account; a daemon that is root reads every file."""
    if status.st_uid == os.geteuid() and not status.st_mode & stat.S_IRUSR:
        os.chmod(f"/proc/self/fd/{file}", stat.S_IMODE(status.st_mode) | stat.S_IRUSR)  # noqa: PTH101 - not its name


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
