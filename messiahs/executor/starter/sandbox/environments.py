"""An unpacked environment, shown read-only where it belongs, and whether its interpreter is on this machine."""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from messiahs.core.interface.causes import Cause
from messiahs.core.model.environments import SHOWN_LETTERS, lacking_text
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.images.environments import TREE, Environment
from messiahs.executor.linux.namespaces import BIND, READ_ONLY, RECURSIVE, mount, open_inside
from messiahs.executor.starter.sandbox.places import SAFE, have_place, mount_inside, mounted

BESIDE: Final = 256
"""Maximum number of entries beside which a folder of the machine gets another one."""
_OTHERS: Final = "this machine has {}, but {} there is another one"


class NoPlaceError(OSError):
    """An environment cannot be shown at its path; the text says why."""


class Bound(NamedTuple):
    """A folder of the machine, and where tasks see it."""

    source: str
    place: str


def bound(root: str, environment: Environment) -> Bound:
    """Return the folder of an unpacked environment and its place."""
    return Bound(f"{root}/{TREE}", environment.path)


def variables_of(environment: Environment, path: str) -> tuple[tuple[str, str], ...]:
    """Return the variables of a task in an environment whose `PATH` is this one otherwise."""
    return (environment.variable, environment.path), ("PATH", f"{environment.path}/bin:{path}")


def why_not_usable(environment: Environment, *, seen: Iterable[str], whole: Collection[str]) -> NotSpawned | None:
    """Return why no task here can use an environment, whose interpreter it needs; None if it can.

    Tasks see the folders `seen`, without what is mounted below them, except in `whole` ones.
    """
    needed = environment.interpreter
    if not needed:
        return None
    seen_by_tasks = partial(_is_seen, folders=tuple(seen), whole=whole, mounts=mounted())
    actual = _actual(needed, seen_by_tasks)
    if not actual or not os.access(actual, os.X_OK):
        return NotSpawned(cause=Cause.NO_INTERPRETER, exit_code=None, text=lacking_text(needed))
    other = next((link for link in environment.links if _actual(link, seen_by_tasks) != actual), "")
    text = _OTHERS.format(needed[:SHOWN_LETTERS], other[:SHOWN_LETTERS])
    return NotSpawned(cause=Cause.NO_INTERPRETER, exit_code=None, text=text) if other else None


def not_shown(error: OSError, place: str) -> NotSpawned:
    """Return that an environment cannot be shown at a place here."""
    text = f"the environment cannot be shown at {place[:SHOWN_LETTERS]}: {error.strerror or 'that is not possible'}"
    return NotSpawned(cause=Cause.NO_PLACE, exit_code=None, text=text)


def _actual(place: str, seen_by_tasks: Callable[[str], bool]) -> str:
    """Return what a path leads to; empty if tasks do not see it.

    The starter looks at nothing that they do not see: what a user names could be on a server that does not answer.
    """
    if not seen_by_tasks(place):
        return ""
    try:
        actual = os.path.realpath(place, strict=True)
    except OSError:
        return ""
    return actual if seen_by_tasks(actual) else ""


def _is_seen(place: str, folders: tuple[str, ...], whole: Collection[str], mounts: Collection[str]) -> bool:
    above = next((folder for folder in folders if f"{place}/".startswith(f"{folder.rstrip('/')}/")), None)
    if above is None:
        # The links of a root lead to folders that are seen.
        top = "/".join(place.split("/")[:2])
        return os.path.islink(top) and _is_seen(os.path.realpath(top) + place[len(top) :], folders, whole, mounts)  # noqa: PTH114 - strings
    if above in whole:
        return True
    parents = (str(one) for one in PurePosixPath(place).parents)
    return not any(one in mounts for one in parents if len(one) > len(above))


def bind_environment(base: str, bound: Bound) -> None:
    """Show an environment in its place of the view in `base`. Raises `NoPlaceError`."""
    try:
        _open_up(base, bound.place)
        have_place(base, bound.place, is_folder=True)
        mount_inside(base, bound.place, bound.source, flags=READ_ONLY | SAFE)
    except OSError as error:
        raise NoPlaceError(error.errno, not_shown(error, bound.place).text) from error


def _open_up(base: str, place: str) -> None:
    """Let the folder at a place be made: the last one above it that is there may be a folder of the machine.

    That is covered then by one that has the same entries, each of which is the machine's.
    """
    above = _last_there(base, place)
    folder = open_inside(base, above)
    try:
        if above in (place, "/") or not os.fstatvfs(folder).f_flag & os.ST_RDONLY:
            return
        names = os.listdir(f"/proc/self/fd/{folder}")  # noqa: PTH208 - names
        if len(names) > BESIDE:
            raise OSError(
                errno.ENOSPC, f"{above[:SHOWN_LETTERS]} has more than {BESIDE} entries, beside which nothing can be put"
            )
        mount("none", f"/proc/self/fd/{folder}", kind="tmpfs", flags=SAFE, options="size=4m,mode=755")
        for name in sorted(names):
            _show_again(base, f"{above}/{name}", f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)


def _last_there(base: str, place: str) -> str:
    while True:
        try:
            os.close(open_inside(base, place))
        except FileNotFoundError:
            place = os.path.dirname(place)  # noqa: PTH120 - strings
        else:
            return place


def _show_again(base: str, place: str, source: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        above = open_inside(base, os.path.dirname(place))  # noqa: PTH120 - as above
        try:
            os.symlink(os.readlink(source), os.path.basename(place), dir_fd=above)  # noqa: PTH115, PTH119 - as above
        finally:
            os.close(above)
    elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        have_place(base, place, is_folder=stat.S_ISDIR(mode))
        target = open_inside(base, place)
        try:
            # With what the view has below it, and with the flags of each: the task sees and may do no more than before.
            mount(source, f"/proc/self/fd/{target}", flags=BIND | RECURSIVE)
        finally:
            os.close(target)
