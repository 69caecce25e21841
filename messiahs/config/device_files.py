"""Device files of the counted things of a machine: which ones tasks in sandboxes may find in their /dev.

A task may get a character device that is one of its own, such as a GPU. What gives power over the host (its memory,
terminals, keyboards, disks) is refused by its name, and by its numbers whatever its name is.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from messiahs.core.model.counted import Counted

DEVICES: Final = 32
"""Device files of one thing."""
Devices = Mapping[str, Mapping[int, tuple[str, ...]]]
"""The device files of counted things, by the names of their kinds and their numbers."""
_EVERYWHERE: Final = frozenset(f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero"))
"""Devices that every sandbox has."""
_PATH: Final = re.compile(r"/dev(/(?!\.\.?(/|$))[A-Za-z0-9_.:@+-]{1,64}){1,8}")
_ALL: Final = range(1 << 20)
_OTHERS_MAY: Final = stat.S_IROTH | stat.S_IWOTH


class _Refused(NamedTuple):
    """Devices that are refused: by their names below /dev, and by their minor numbers for each major number."""

    names: re.Pattern[str]
    numbers: Mapping[int, Iterable[int]]
    what: str


_REFUSED: Final = (
    _Refused(
        re.compile(r"(k|old)?mem|core|port|kmsg|nvram|userfaultfd|cpu/.*"),
        {1: (1, 2, 4, 6, 11, 12), 10: (144,), 202: _ALL, 203: _ALL},
        "gives access to the memory, processors or log of the host",
    ),
    _Refused(
        re.compile(r"console|ptmx|pts/.*|tty(S?\d+)?|vcs.*"),
        {4: _ALL, 5: _ALL, 7: _ALL, **dict.fromkeys(range(136, 144), _ALL)},
        "is a terminal of the host",
    ),
    _Refused(
        re.compile(r"input/.*|psaux|uinput|uhid|hidraw\d+"),
        {13: _ALL, 10: (1, 223, 239)},
        "reads or types on keyboards of the host",
    ),
    _Refused(
        re.compile(r"sg\d+|bsg/.*|nvme\d.*|ng\d.*|raw/.*|mapper/.*|loop-control|btrfs-control"),
        {21: _ALL, 162: _ALL, 10: (234, 236, 237)},
        "gives access to disks of the host",
    ),
    _Refused(re.compile(r"watchdog\d*|ipmi.*"), {10: (130,)}, "can switch the host off"),
    _Refused(re.compile(r"(shm|mqueue|fd)/.*"), {}, "is in a folder of files and no devices"),
    _Refused(re.compile(r"shm|mqueue|pts"), {}, "is a folder, which every sandbox has for itself"),
    _Refused(re.compile(r"fd|std(in|out|err)"), {}, "leads to open files of the program that looks at it"),
)


class DeviceError(OSError):
    """A device file is not there, or is none that tasks may get; the text says which and why."""


class DeviceFile(NamedTuple):
    """A device of the host: the path by which it was named, and the one to which links on the way lead."""

    named: str
    actual: str
    mode: int

    @property
    def is_open_to_others(self) -> bool:
        """Whether an account may read and write it that neither owns it nor has its group."""
        return self.mode & _OTHERS_MAY == _OTHERS_MAY

    @property
    def needs_link(self) -> bool:
        """Whether a sandbox needs a link from the first path to the other one; it has some devices anyway."""
        return self.named != self.actual and self.named not in _EVERYWHERE


def problem_of_path(path: str) -> str:
    """Return why no task may get what is at a path, by its name alone; empty if it may."""
    if not _PATH.fullmatch(path):
        return "is not the absolute path of a device file below /dev"
    name = path.removeprefix("/dev/")
    return next((refused.what for refused in _REFUSED if refused.names.fullmatch(name)), "")


def device_at(path: str) -> DeviceFile:
    """Return the device of this host that a path names. Raises `DeviceError`."""
    problem = problem_of_path(path)
    if problem:
        raise DeviceError(f"{path} {problem}")
    try:
        actual = os.path.realpath(path, strict=True)
        found = os.stat(actual)  # noqa: PTH116 - strings: once per task and device
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}") from error
    problem = problem_of_path(actual) or _problem_of(found)
    if problem:
        raise DeviceError(f"{path}{'' if actual == path else f' leads to {actual}, which'} {problem}")
    return DeviceFile(path, actual, found.st_mode)


def devices_for(assigned: Iterable[Counted], devices: Devices) -> tuple[str, ...]:
    """Return the device files of assigned things, each once: things may share some."""
    found = (
        path for each in assigned for number in each.numbers for path in devices.get(each.name, {}).get(number, ())
    )
    return tuple(dict.fromkeys(found))


def problems_of_things(devices: Devices) -> Iterator[tuple[str, int, str]]:
    """Yield the things of which a device file is missing here or refused, each with what is wrong."""
    for name, files in devices.items():
        for number, paths in files.items():
            try:
                for path in paths:
                    device_at(path)
            except DeviceError as error:
                yield name, number, str(error)


def _problem_of(found: os.stat_result) -> str:
    if not stat.S_ISCHR(found.st_mode):
        return "is not a character device"
    major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
    return next((refused.what for refused in _REFUSED if minor in refused.numbers.get(major, ())), "")
