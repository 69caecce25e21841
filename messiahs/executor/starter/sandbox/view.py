"""What a task sees of the machine: a read-only root with private folders, in the mount namespace of its slot."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from messiahs.config.device_files import DeviceFile
from messiahs.executor.linux.local_accounts import LocalAccount
from messiahs.executor.linux.namespaces import (
    BIND,
    NO_EXECUTION,
    NO_SET_UID,
    PRIVATE,
    READ_ONLY,
    RECURSIVE,
    REMOUNT,
    make_root,
    mount,
    open_inside,
    unmount,
)
from messiahs.executor.starter.sandbox.environments import Bound, bind_environment
from messiahs.executor.starter.sandbox.places import NEW_FILE, SAFE, have_place, mount_inside, mounted

TASK: Final = "/task"
"""The folder of a slot, as its task sees it; the task's working directory is below it."""
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
_DRAFT: Final = f"{TASK}/draft"
"""Where texts are written before they are shown: in a folder that is this module's own, whatever an image has."""
_EXECUTION_FLAG: Final = 8


class Resolver(NamedTuple):
    """The file that names the servers of names: where it is, whatever leads there, and what it says."""

    place: str
    text: str


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
    environment: Bound | None = None
    """What tasks see besides."""
    devices: tuple[DeviceFile, ...] = ()
    """Devices of the machine that they find in their /dev besides those of every task."""


def make_view(view: View, *, slot_folder: str, account: LocalAccount) -> None:
    """Make the view the root of this process, which is in new namespaces of mounts and processes. Raises `OSError`."""
    mount("none", "/", flags=PRIVATE | RECURSIVE)
    mount("root", view.base, kind="tmpfs", flags=SAFE, options="size=4m,mode=755")
    # Before anything of an image is there: these are folders of this module, whatever the image has.
    for name in MADE:
        Path(view.base, name).mkdir()
    for source in _of_image(view.image) if view.image else _shown(view):
        _bind(source, view.base, source.removeprefix(view.image))
    for place in () if view.image else view.hidden:
        _hide(view.base, place)
    for link in links_of_root(view.image or "/"):
        if link.name not in MADE and not os.path.lexists(f"{view.base}/{link.name}"):
            Path(view.base, link.name).symlink_to(Path(link.path).readlink())
    for name in () if view.image else EMPTY:
        Path(view.base, name).mkdir(exist_ok=True)
    if view.name_server:
        _make_resolver(view)
    elif view.resolves_names:
        _show_resolver(view)
    _make_accounts(view, account)
    _make_devices(f"{view.base}/dev", view.devices)
    # Else a task could lower what makes it a likelier victim of lack of memory than the module.
    mount("proc", f"{view.base}/proc", kind="proc", flags=SAFE | NO_EXECUTION | READ_ONLY, options="hidepid=2")
    mount(slot_folder, view.base + TASK, flags=BIND)
    mount("none", view.base + TASK, flags=BIND | REMOUNT | SAFE)
    _have_temporary(view.base)
    if view.environment is not None:
        # It may belong below a temporary folder.
        bind_environment(view.base, view.environment)
    mount("none", view.base, flags=BIND | REMOUNT | READ_ONLY | SAFE)
    make_root(view.base)


def as_tasks_see(view: View, error: BaseException) -> str:
    """Return why a view cannot be made, with the place as tasks see it: their origin reads it."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or repr(error)
    place = str(error.filename2 or error.filename or "")
    text = f"{place}: {error.strerror}" if place.startswith(f"{view.base}/") else error.strerror
    return text.replace(f"{view.base}/", "/")


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


def _have_temporary(base: str = "") -> None:
    for folder in _WRITABLE:
        mount("tmpfs", base + folder, kind="tmpfs", flags=SAFE, options=_TEMPORARY)
    if not base and _has_own_var_tmp():
        mount("/tmp", "/var/tmp", flags=BIND)  # noqa: S108 - as above
    elif base:
        _show_var_tmp(base)


def _show_var_tmp(base: str) -> None:
    try:
        target = open_inside(base, "/var/tmp")  # noqa: S108 - as above
    except OSError:
        return
    try:
        if stat.S_ISDIR(os.fstat(target).st_mode):
            mount(f"{base}/tmp", f"/proc/self/fd/{target}", flags=BIND)  # noqa: S108 - as above
    finally:
        os.close(target)


def _has_own_var_tmp() -> bool:
    return Path("/var/tmp").is_dir()  # noqa: S108 - as above


def _shown(view: View) -> Iterator[str]:
    """Yield the folders of the machine that are bound, those above before those below."""
    chosen = shown_folders(view)
    yield from chosen
    system = tuple(f"{folder}/" for folder in chosen if folder in SYSTEM)
    yield from sorted(place for place in mounted() if place.startswith(system))


def shown_folders(view: View) -> list[str]:
    """Return the folders of the machine that tasks see, without what is mounted below them."""
    if view.folders:
        # What is below a folder of a sandbox's own would be covered by it.
        return sorted(folder for folder in view.folders if Path(folder).parts[1] not in MADE)
    hidden = {*EMPTY, *MADE}
    with os.scandir("/") as entries:
        return sorted(entry.path for entry in entries if _is_folder(entry) and entry.name not in hidden)


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


def _bind(source: str, base: str, place: str) -> None:
    """Show a folder or file of the machine read-only; nothing happens if it is not there."""
    try:
        found = os.statvfs(source)
    except OSError:
        return
    have_place(base, place, is_folder=stat.S_ISDIR(os.stat(source).st_mode))  # noqa: PTH116 - strings
    no_execution = NO_EXECUTION if found.f_flag & _EXECUTION_FLAG else 0
    mount_inside(base, place, source, flags=READ_ONLY | SAFE | no_execution)


def _hide(base: str, place: str) -> None:
    """Cover a folder of the machine with an empty one; nothing happens if the view does not have it.

    Raises `OSError` if the machine does not have it: the task would see it once somebody makes it.
    """
    if not os.path.isdir(place):  # noqa: PTH112 - strings
        raise OSError(errno.ENOENT, f"{place} is not there, which the task must not see: make it, and try again")
    try:
        target = open_inside(base, place)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if stat.S_ISDIR(os.fstat(target).st_mode):
            covers, options = SAFE | READ_ONLY | NO_EXECUTION, "size=4k,mode=755"
            mount("none", f"/proc/self/fd/{target}", kind="tmpfs", flags=covers, options=options)
    finally:
        os.close(target)


def _show_resolver(view: View) -> None:
    source = os.path.realpath(_RESOLVER)
    if view.image:
        # It is an ordinary file there, whatever it was.
        _bind(source, view.base, _RESOLVER)
    elif _text_inside(view.base, source) is None:
        _bind(source, view.base, source)


def _make_resolver(view: View) -> None:
    """Show the machine's file of servers of names with another server; without such a file there is none."""
    found = resolver_text(view.name_server)
    if found is not None:
        # In an image it is an ordinary file, whatever it was.
        place = _RESOLVER if view.image else found.place
        have_place(view.base, place, is_folder=False)
        _cover(view.base, place, found.text)


def resolver_text(name_server: str) -> Resolver | None:
    """Return the machine's file of servers of names with another server; None if it has no such file."""
    source = Path(os.path.realpath(_RESOLVER))
    if not source.is_file():
        return None
    lines = source.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("nameserver")]
    return Resolver(place=str(source), text="\n".join((f"nameserver {name_server}", *kept, "")))


def _make_devices(folder: str, assigned: Iterable[DeviceFile]) -> None:
    mount("dev", folder, kind="tmpfs", flags=NO_SET_UID | NO_EXECUTION, options="size=64k,mode=755")
    for name in _DEVICES:
        if Path("/dev", name).exists():
            _show_device(folder, f"/dev/{name}")
    for device in assigned:
        _show_device(folder, device.actual)
        if device.needs_link:
            _place_of_device(folder, device.named).symlink_to(device.actual)
    for name, target in _LINKS.items():
        Path(folder, name).symlink_to(target)
    for name in ("pts", "shm"):
        Path(folder, name).mkdir()
    options = "newinstance,ptmxmode=0666,mode=0620"
    mount("devpts", f"{folder}/pts", kind="devpts", flags=NO_SET_UID | NO_EXECUTION, options=options)
    mount("none", folder, flags=BIND | REMOUNT | READ_ONLY | NO_SET_UID | NO_EXECUTION)


def _show_device(folder: str, device: str) -> None:
    place = _place_of_device(folder, device)
    place.touch()
    mount(device, str(place), flags=BIND)
    mount("none", str(place), flags=BIND | REMOUNT | NO_SET_UID | NO_EXECUTION)


def _place_of_device(folder: str, path: str) -> Path:
    """Return the place of a path below /dev in the folder that tasks see there, with the folders above it."""
    place = Path(folder, path.removeprefix("/dev/"))
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _make_accounts(view: View, account: LocalAccount) -> None:
    """Give the account of the slot a name, which programs may need, after those that the files have."""
    entries = {
        "/etc/passwd": f"{account.name}:x:{account.uid}:{account.gid}::{TASK}/work:/bin/sh\n",
        "/etc/group": f"{account.name}:x:{account.gid}:\n",
    }
    for place, entry in entries.items():
        known = _text_inside(view.base, place)
        if known is not None:
            ended = known if known.endswith("\n") or not known else f"{known}\n"
            _cover(view.base, place, ended + entry)


def _text_inside(base: str, place: str) -> str | None:
    """Return the text of a file of the view; None if there is no such file in it."""
    try:
        found = open_inside(base, place)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            return None
        return Path("/proc/self/fd", str(found)).read_text(encoding="utf-8", errors="surrogateescape")
    finally:
        os.close(found)


def _cover(base: str, place: str, text: str) -> None:
    """Show another text in place of a file."""
    draft = base + _DRAFT
    file = os.open(draft, NEW_FILE, 0o644)
    with open(file, "w", encoding="utf-8", errors="surrogateescape") as written:  # noqa: PTH123 - a descriptor
        written.write(text)
    mount_inside(base, place, draft, flags=READ_ONLY | SAFE)
    os.unlink(draft)  # noqa: PTH108 - strings
