"""What a task sees of the machine: a read-only root with private folders, in the mount namespace of its slot."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.executor.linux.local_accounts import LocalAccount
from messiahs.executor.linux.namespaces import (
    BIND,
    NO_DEVICES,
    NO_EXECUTION,
    NO_SET_UID,
    PRIVATE,
    READ_ONLY,
    RECURSIVE,
    REMOUNT,
    make_root,
    mount,
    unmount,
)

TASK: Final = "/task"
"""The folder of a slot, as its task sees it; the task's working directory is below it."""
USER: Final = "task"
"""Name of the tasks' account in a sandbox."""
EMPTY: Final = ("home", "root", "run", "mnt", "media", "lost+found")
"""Folders of the root that tasks see without their content."""
MADE: Final = ("dev", "proc", "tmp", TASK[1:])
"""Folders of the root that are not the machine's."""
SYSTEM: Final = ("/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr")
"""Folders that bring what is mounted below them."""
_DEVICES: Final = ("full", "null", "random", "tty", "urandom", "zero")
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "ptmx": "pts/ptmx",
    "stderr": "/proc/self/fd/2",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
}
_WRITABLE: Final = ("/tmp", "/dev/shm")  # noqa: S108 - those of the sandbox
_TEMPORARY: Final = "size=1g,nr_inodes=65536,mode=1777"
_RESOLVER: Final = "/etc/resolv.conf"
_SAFE: Final = NO_SET_UID | NO_DEVICES
_EXECUTION_FLAG: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How the root of a slot is made.

    `base` is an empty folder on which it is put together. `folders` are those of the machine that tasks see; none:
    everything in `/`, except the folders of its users and of running services. Whatever is mounted below is left out,
    except below the folders of the system.
    """

    base: str
    folders: tuple[str, ...] = ()
    resolves_names: bool = False
    """Whether the file that names the servers of names is needed, wherever it is."""
    name_server: str = ""
    """The address of the only server of names that tasks reach; empty: those of the machine."""
    image: str = ""
    """The root of an unpacked image that tasks see in place of what the machine has in `/`; empty: none."""
    hidden: tuple[str, ...] = ()
    """Folders of the machine that tasks see empty, whatever they see around them."""


def make_view(view: View, *, slot_folder: str, account: LocalAccount) -> None:
    """Make the view the root of this process, which is in new namespaces of mounts and processes. Raises `OSError`."""
    mount("none", "/", flags=PRIVATE | RECURSIVE)
    mount("root", view.base, kind="tmpfs", flags=_SAFE, options="size=4m,mode=755")
    for source in _of_image(view.image) if view.image else _shown(view):
        _bind(source, view.base + source.removeprefix(view.image))
    for place in () if view.image else view.hidden:
        _hide(view.base + place)
    for link in links_of_root(view.image or "/"):
        if link.name not in MADE and not os.path.lexists(f"{view.base}/{link.name}"):
            Path(view.base, link.name).symlink_to(Path(link.path).readlink())
    for name in MADE if view.image else (*EMPTY, *MADE):
        Path(view.base, name).mkdir(exist_ok=True)
    if view.name_server:
        _make_resolver(view)
    elif view.resolves_names:
        _show_resolver(view)
    _make_devices(f"{view.base}/dev")
    _make_accounts(view, account)
    mount("proc", f"{view.base}/proc", kind="proc", flags=_SAFE | NO_EXECUTION, options="hidepid=2")
    mount(slot_folder, view.base + TASK, flags=BIND)
    mount("none", view.base + TASK, flags=BIND | REMOUNT | _SAFE)
    mount("none", view.base, flags=BIND | REMOUNT | READ_ONLY | _SAFE)
    make_root(view.base)
    _have_temporary()


class Temporary:
    """The folders that a task can write to besides its own; they are in memory, and empty at first."""

    def __init__(self) -> None:
        self._empty_bytes = self._sizes()

    def clean(self) -> None:
        """Remove everything that a task left there. Raises `OSError`."""
        # A folder in memory grows with every entry, and shrinks when one is removed.
        if self._sizes() != self._empty_bytes:
            if _has_own_var_tmp():
                unmount("/var/tmp")  # noqa: S108 - as above
            for folder in _WRITABLE:
                unmount(folder)
            _have_temporary()

    def _sizes(self) -> tuple[int, ...]:
        return tuple(os.stat(folder).st_size for folder in _WRITABLE)  # noqa: PTH116 - strings: once per task


def _have_temporary() -> None:
    for folder in _WRITABLE:
        mount("tmpfs", folder, kind="tmpfs", flags=_SAFE, options=_TEMPORARY)
    if _has_own_var_tmp():
        mount("/tmp", "/var/tmp", flags=BIND)  # noqa: S108 - as above


def _has_own_var_tmp() -> bool:
    return Path("/var/tmp").is_dir()  # noqa: S108 - as above


def _shown(view: View) -> Iterator[str]:
    """Yield the folders of the machine that are bound, those above before those below."""
    if view.folders:
        chosen = sorted(view.folders)
    else:
        hidden = {*EMPTY, *MADE}
        with os.scandir("/") as entries:
            chosen = sorted(entry.path for entry in entries if _is_folder(entry) and entry.name not in hidden)
    yield from chosen
    system = tuple(f"{folder}/" for folder in chosen if folder in SYSTEM)
    yield from sorted(place for place in mounted() if place.startswith(system))


def _of_image(root: str) -> Iterator[str]:
    """Yield everything in the root of an image but links and what a sandbox has of its own."""
    with os.scandir(root) as entries:
        yield from (entry.path for entry in entries if not entry.is_symlink() and entry.name not in MADE)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir(follow_symlinks=False)


def links_of_root(root: str = "/") -> Iterator["os.DirEntry[str]"]:
    """Yield the symbolic links in a root, which many systems have instead of folders."""
    with os.scandir(root) as entries:
        yield from (entry for entry in entries if entry.is_symlink())


def mounted() -> set[str]:
    """Return the places of all mounts."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - read once
        return {line.split(" ", 5)[4].replace("\\040", " ") for line in file}


def _bind(source: str, target: str) -> None:
    """Show a folder or file of the machine read-only; nothing happens if it is not there."""
    try:
        found = os.statvfs(source)
    except OSError:
        return
    _have_place(target, is_folder=stat.S_ISDIR(os.stat(source).st_mode))  # noqa: PTH116 - strings
    mount(source, target, flags=BIND)
    no_execution = NO_EXECUTION if found.f_flag & _EXECUTION_FLAG else 0
    mount("none", target, flags=BIND | REMOUNT | READ_ONLY | _SAFE | no_execution)


def _hide(target: str) -> None:
    """Cover a folder of the view with an empty one; nothing happens if it is not there."""
    if os.path.isdir(target):  # noqa: PTH112 - strings
        mount("none", target, kind="tmpfs", flags=_SAFE | READ_ONLY | NO_EXECUTION, options="size=4k,mode=755")


def _have_place(target: str, *, is_folder: bool) -> None:
    if os.path.lexists(target):
        return
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path.mkdir()
    else:
        path.touch()


def _show_resolver(view: View) -> None:
    source = os.path.realpath(_RESOLVER)
    if view.image:
        # It is an ordinary file there, whatever it was.
        _bind(source, view.base + _RESOLVER)
    elif not os.path.exists(view.base + source):  # noqa: PTH110 - strings
        _bind(source, view.base + source)


def _make_resolver(view: View) -> None:
    """Show the machine's file of servers of names with another server; without such a file there is none."""
    source = Path(os.path.realpath(_RESOLVER))
    if source.is_file():
        lines = source.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        kept = [line for line in lines if not line.lstrip().startswith("nameserver")]
        # In an image it is an ordinary file, whatever it was.
        place = _RESOLVER if view.image else str(source)
        _have_place(f"{view.base}{place}", is_folder=False)
        _cover(view.base, place, "\n".join((f"nameserver {view.name_server}", *kept, "")))


def _make_devices(folder: str) -> None:
    mount("dev", folder, kind="tmpfs", flags=NO_SET_UID | NO_EXECUTION, options="size=64k,mode=755")
    for name in _DEVICES:
        if Path("/dev", name).exists():
            Path(folder, name).touch()
            mount(f"/dev/{name}", f"{folder}/{name}", flags=BIND)
            mount("none", f"{folder}/{name}", flags=BIND | REMOUNT | NO_SET_UID | NO_EXECUTION)
    for name, target in _LINKS.items():
        Path(folder, name).symlink_to(target)
    for name in ("pts", "shm"):
        Path(folder, name).mkdir()
    options = "newinstance,ptmxmode=0666,mode=0620"
    mount("devpts", f"{folder}/pts", kind="devpts", flags=NO_SET_UID | NO_EXECUTION, options=options)
    mount("none", folder, flags=BIND | REMOUNT | READ_ONLY | NO_SET_UID | NO_EXECUTION)


def _make_accounts(view: View, account: LocalAccount) -> None:
    """Give the account of the slot a name, which programs may need, unless the files know its number already."""
    entries = {
        "passwd": f"{account.name}:x:{account.uid}:{account.gid}::{TASK}/work:/bin/sh\n",
        "group": f"{account.name}:x:{account.gid}:\n",
    }
    for name, entry in entries.items():
        if os.path.isfile(f"{view.base}/etc/{name}"):  # noqa: PTH113 - strings
            known = Path(view.image or "/", "etc", name).read_text(encoding="utf-8", errors="surrogateescape")
            ended = known if known.endswith("\n") or not known else f"{known}\n"
            _cover(view.base, f"/etc/{name}", ended + entry)


def _cover(base: str, place: str, text: str) -> None:
    """Show another text in place of a file."""
    draft = Path(base, ".draft")
    draft.write_text(text, encoding="utf-8", errors="surrogateescape")
    draft.chmod(0o644)
    mount(str(draft), base + place, flags=BIND)
    draft.unlink()
    mount("none", base + place, flags=BIND | REMOUNT | READ_ONLY | _SAFE)
