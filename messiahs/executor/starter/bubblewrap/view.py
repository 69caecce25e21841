"""What a task in a box sees of the machine, as arguments of bubblewrap.

The task has the account of the starter, which may be that of the daemon. Without a choice it therefore sees only the
folders of the system: elsewhere the account may have files that no other account can read.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.device_files import device_at
from messiahs.core.model.environments import SHOWN_LETTERS
from messiahs.executor.starter.sandbox.environments import BESIDE
from messiahs.executor.starter.sandbox.places import mounted
from messiahs.executor.starter.sandbox.view import EMPTY, MADE, SYSTEM, TASK, links_of_root

WORK_SEEN: Final = f"{TASK}/work"
"""The working directory of a task, as it sees it."""
TEMPORARY_BYTES: Final = 1 << 30
WHOLE: Final = (*SYSTEM, "/sys")
"""Folders that bring what is mounted below them; tasks see them if the site chooses none."""
_RESOLVER: Final = "/etc/resolv.conf"
_TEMPORARY: Final = ("--perms", "1777", "--size", str(TEMPORARY_BYTES), "--tmpfs")
_VAR_TMP: Final = "/var/tmp"  # noqa: S108 - that of the box
_TEMPORARY_FOLDERS: Final = ("/tmp", _VAR_TMP)  # noqa: S108 - as above
"""Folders of the box, which cover those of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxView:
    """How the root of a box is made.

    `folders` are those of the machine that tasks see; none: those of the system. Tasks do not see the folders `hidden`,
    which are the module's own, nor what is mounted below a folder that is not the system's.
    """

    folders: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    resolves_names: bool = False
    """Whether the file that names the servers of names is needed, wherever it is."""


def view_arguments(view: BoxView) -> tuple[str, ...]:
    """Return the arguments that make a view; only what a task has of its own, and the end, are missing.

    Raises `OSError`.
    """
    folders = shown_in_boxes(view)
    arguments: list[str] = []
    for folder in folders:
        arguments += ("--ro-bind-try", folder, folder)
    arguments += _covering(_covered(view, folders))
    for link in (link for link in links_of_root() if link.path not in folders):
        arguments += ("--symlink", str(Path(link.path).readlink()), link.path)
    for name in (*EMPTY, *MADE):
        arguments += ("--dir", f"/{name}")
    # Else a task could lower what makes it a likelier victim of lack of memory than the module.
    arguments += ("--proc", "/proc", "--remount-ro", "/proc")
    arguments += ("--dev", "/dev", *_TEMPORARY, "/dev/shm")  # noqa: S108 - that of the box
    arguments += (*_TEMPORARY, "/tmp")  # noqa: S108 - as above
    is_there = any(f"{folder}/".startswith(f"{_VAR_TMP}/") for folder in folders)
    if is_there or (_is_below(_VAR_TMP, folders) and os.path.isdir(_VAR_TMP)):  # noqa: PTH112 - strings
        arguments += (*_TEMPORARY, _VAR_TMP)
    elif not _is_below(_VAR_TMP, folders):
        arguments += ("--dir", "/var", "--symlink", "../tmp", _VAR_TMP)
    if view.resolves_names:
        arguments += _resolver(folders)
    return tuple(arguments)


def shown_in_boxes(view: BoxView) -> list[str]:
    """Return the folders of the machine that tasks see."""
    return sorted(view.folders) if view.folders else [folder for folder in WHOLE if _is_folder(folder)]


def environment_arguments(view: BoxView, source: str, place: str, /) -> tuple[str, ...]:
    """Return the arguments that show an environment in its place. Raises `OSError` if that is not possible.

    The last folder above it that is there may be one of the machine: that is covered then by one with the same entries,
    in which tasks see no more than before.
    """
    bind, folders = ("--ro-bind", source, place), shown_in_boxes(view)
    if not _is_below(f"{place}/", folders) and not os.path.islink("/".join(place.split("/")[:2])):  # noqa: PTH114 - strings
        # What the machine has there is not looked at: nothing of it is in the box.
        return bind
    above = place
    while not os.path.lexists(above):
        above = os.path.dirname(above)  # noqa: PTH120 - strings
    actual = os.path.realpath(above)
    if not _is_below(f"{actual}/", folders) or _is_below(f"{actual}/", _TEMPORARY_FOLDERS):
        return bind
    if above == place:
        if not os.path.isdir(actual):  # noqa: PTH112 - strings
            raise OSError(errno.ENOTDIR, "something else is there")
        return bind
    names, covered = sorted(os.listdir(actual)), list(_covered(view, folders))  # noqa: PTH208 - names
    if len(names) > BESIDE or _is_below(f"{actual}/", covered):
        raise OSError(
            errno.ENOSPC, f"beside {len(names)} entries of {actual[:SHOWN_LETTERS]}, nothing can be shown to a task"
        )
    arguments = ["--perms", "0755", "--tmpfs", actual]
    for name in names:
        entry = f"{actual}/{name}"
        is_link = os.path.islink(entry)  # noqa: PTH114 - as above
        arguments += ("--symlink", os.readlink(entry), entry) if is_link else ("--ro-bind-try", entry, entry)  # noqa: PTH115 - as above
    arguments += _covering(one for one in covered if _is_below(one, (actual,)))
    if _is_below(_VAR_TMP, (actual,)) and os.path.isdir(_VAR_TMP):  # noqa: PTH112 - strings
        arguments += (*_TEMPORARY, _VAR_TMP)
    return (*arguments, "--ro-bind", source, actual + place[len(above) :], "--remount-ro", actual)


def device_arguments(devices: Iterable[str]) -> Iterator[str]:
    """Yield the arguments that show devices of the machine, in a /dev that can still be changed.

    Raises `DeviceError`.
    """
    for device in map(device_at, devices):
        yield from ("--dev-bind", device.actual, device.actual)
        if device.needs_link:
            yield from ("--symlink", device.actual, device.named)


def _covering(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        yield from ("--tmpfs", place, "--remount-ro", place)


def _covered(view: BoxView, folders: list[str]) -> Iterator[str]:
    """Yield the folders below those shown that tasks do not see, the outermost only.

    Raises `OSError` for one that is not there: tasks that run already would see it once somebody makes it.
    """
    found = {place for place in view.hidden if _is_below(place, folders)}
    chosen = [folder for folder in folders if folder not in WHOLE]
    found |= {place for place in mounted() if _is_below(place, chosen)}
    for place in sorted(found):
        if _is_below(place, found):
            continue
        if os.path.isdir(place):  # noqa: PTH112 - strings
            yield place
        elif place in view.hidden:
            raise OSError(errno.ENOENT, f"{place} is not there, which tasks must not see: make it, and try again")


def _is_folder(place: str) -> bool:
    return os.path.isdir(place) and not os.path.islink(place)  # noqa: PTH112, PTH114 - strings


def _resolver(folders: list[str]) -> tuple[str, ...]:
    source = os.path.realpath(_RESOLVER)
    return () if _is_below(source, folders) else ("--ro-bind-try", source, source)


def _is_below(place: str, folders: Iterable[str]) -> bool:
    return any(place.startswith(f"{folder}/") for folder in folders)
