"""Where this process may create control groups, found by its own group and the mounted hierarchies."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from messiahs.executor.linux.cgroups import version1, version2

_NOT_IN_THE_FIRST_GROUP = "cgroup.type"
"""A file of every group of version 2 but the first one, in which processes may be beside other groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where groups may be created: one folder of version 2, or folders of version 1 by their controllers.

    If there is neither, `problem` says why.
    """

    version2: str = ""
    version1: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def limits(self) -> str:
        """What groups there limit, in words."""
        found = version2.controllers_in(self.version2) if self.version2 else set(self.version1)
        words = {"memory": "memory", "pids": "processes", "cpu": "processors"}
        return ", ".join(word for controller, word in words.items() if controller in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mounted:
    """A mounted hierarchy: where, and which group its mount point is."""

    folder: str
    root: str


def find_place(proc: Path = Path("/proc/self"), *, prepares: bool = True) -> Place:
    """Find a place for groups; a hierarchy of version 2 that limits memory is preferred.

    Groups of version 1 are created below the own group. Groups of version 2 are created in the nearest group that this
    account may divide: the own one or one above it, without processes of its own, since the kernel allows no groups
    with limits beside processes. With `prepares`, that group lets those below it have its controllers.
    """
    own = _own_groups((proc / "cgroup").read_text())
    mounted = _mounts((proc / "mountinfo").read_text())
    second = _path_of(mounted.get(""), own.get(""))
    for folder in _upwards(second, mounted[""].folder) if second else ():
        if "memory" in version2.controllers_in(folder) and _can_divide(folder):
            try:
                if prepares:
                    version2.enable(folder)
                return Place(version2=folder)
            except OSError as error:
                return Place(problem=f"no control groups: {folder} cannot be divided: {error.strerror}")
    first = {
        name: path
        for name in version1.CONTROLLERS
        if (path := _path_of(mounted.get(name), own.get(name))) and os.access(path, os.W_OK, effective_ids=True)
    }
    if {"memory", "pids"} <= first.keys():
        return Place(version1=first)
    return Place(problem="no control groups: there is none that this account may divide")


def _path_of(mounted: _Mounted | None, own: str | None) -> str:
    """Return the path of an own group below a mount point; that itself if the group is not below it."""
    if mounted is None or own is None:
        return ""
    inside = os.path.relpath(own, mounted.root)
    return mounted.folder if inside == "." or inside.startswith("..") else f"{mounted.folder}/{inside}"


def _upwards(folder: str, top: str) -> Iterator[str]:
    """Yield a folder and those above it, up to the mount point."""
    yield folder
    while folder != top:
        folder = folder.rpartition("/")[0]
        yield folder


def _can_divide(folder: str) -> bool:
    files = (folder, f"{folder}/cgroup.subtree_control", f"{folder}/cgroup.procs")
    if not all(os.access(file, os.W_OK, effective_ids=True) for file in files):
        return False
    is_first = not os.path.exists(f"{folder}/{_NOT_IN_THE_FIRST_GROUP}")  # noqa: PTH110 - from the kernel
    return is_first or not Path(folder, "cgroup.procs").read_text().strip()


def _own_groups(text: str) -> dict[str, str]:
    """Return the own group by controller; that of version 2 has an empty name."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _mounts(text: str) -> dict[str, _Mounted]:
    """Return the mounted hierarchies by controller."""
    found: dict[str, _Mounted] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if kinds[0] == "cgroup2":
            found.setdefault("", _Mounted(folder=words[4], root=words[3]))
        elif kinds[0] == "cgroup":
            for controller in kinds[-1].split(","):
                found.setdefault(controller, _Mounted(folder=words[4], root=words[3]))
    return found
