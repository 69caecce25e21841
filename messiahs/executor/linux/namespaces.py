"""Namespaces, mounts and limits of capabilities: system calls that Python does not offer."""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable
from typing import Final

NEW_MOUNTS: Final = 0x00020000
NEW_CGROUP: Final = 0x02000000
NEW_HOST_NAME: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_USERS: Final = 0x10000000
NEW_PROCESSES: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000

READ_ONLY, NO_SET_UID, NO_DEVICES, NO_EXECUTION, REMOUNT = 1, 2, 4, 8, 32
BIND, RECURSIVE, PRIVATE, FOLLOWING = 1 << 12, 1 << 14, 1 << 18, 1 << 19
"""Flags of `mount`."""
_DETACH: Final = 2
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_DROP_FROM_BOUNDING_SET, _SET_DUMPABLE = 24, 4
_SET_FLAGS, _LOOPBACK, _UP = 0x8914, b"lo", 1
_NETLINK_HEADER: Final = struct.Struct("=IHHII")
_NEW_ROUTE, _CREATE_AND_ANSWER, _DESTINATION = 24, 0x0605, 1
_MAIN_TABLE, _STATIC, _UNREACHABLE = 254, 4, 7
"""A message of rtnetlink(7), and how it describes a route."""
_ANSWER_BYTES: Final = 4096
_OPEN_BELOW: Final = 437
"""`openat2`, on every architecture."""
_NO_MAGIC_LINKS, _IN_ROOT = 0x02, 0x10
_NAME_BYTES, _REQUEST_BYTES = 16, 40


def unshare(namespaces: int) -> None:
    """Enter new namespaces of these kinds; a new process namespace is entered by the next child only."""
    _checked(_library().unshare(namespaces), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Enter the namespace of an open file of /proc/PID/ns."""
    _checked(_library().setns(namespace, kind), "setns")


def mount(source: str, target: str, *, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or change a mount. Raises `OSError`."""
    result = _library().mount(
        os.fsencode(source), os.fsencode(target), os.fsencode(kind) or None, ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, f"mount {target}")


def unmount(target: str) -> None:
    """Detach a mount with everything below it; what is open there stays until it is closed."""
    _checked(_library().umount2(os.fsencode(target), _DETACH), f"unmount {target}")


def show_own_processes() -> None:
    """Let this process and its descendants see in /proc the processes of their own process namespace alone.

    What the machine mounts from now on they see as before. Raises `OSError` if the machine does not let it.
    """
    unshare(NEW_MOUNTS)
    mount("none", "/", flags=FOLLOWING | RECURSIVE)
    mount("proc", "/proc", kind="proc", flags=NO_SET_UID | NO_DEVICES | NO_EXECUTION)


def why_too_old() -> str:
    """Return why `open_inside` cannot work on this Linux; empty if it can."""
    # A known call refuses a request of no length before it looks at anything else.
    _library().syscall(_OPEN_BELOW, -1, b"", b"", 0)
    if ctypes.get_errno() == errno.EINVAL:
        return ""
    lacks = f"which Linux {os.uname().release} does not have, or does not let this process use"
    return f"they need openat2 (Linux 5.6), {lacks}"


def open_inside(root: str, place: str) -> int:
    """Return a descriptor of a place, which a mount can have as its target, and which reads nothing.

    The folder `root` is taken as the root: no link on the way leads out of it. Raises `OSError`.
    """
    above = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_MAGIC_LINKS | _IN_ROOT)
        found: int = _library().syscall(_OPEN_BELOW, above, os.fsencode(place), how, len(how))
        _checked(min(found, 0), f"open {place}")
        return found
    finally:
        os.close(above)


def make_root(folder: str) -> None:
    """Make a mount the root of this mount namespace; nothing of the old root remains reachable."""
    os.chdir(folder)
    _checked(_library().syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    # The old root is now mounted above the new one, at the same place.
    unmount(".")
    os.chdir("/")


def bound_capabilities(kept: Iterable[int] = ()) -> None:
    """Make it impossible for this process and its descendants to gain capabilities other than `kept` by a program."""
    last = _last_capability()
    for capability in set(range(last + 1)) - set(kept):
        _checked(_library().prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0), "bounding set")


def be_opaque() -> None:
    """Let no process of another account look into this one."""
    _checked(_library().prctl(_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")


def be_transparent() -> None:
    """Let processes of the same account look into this one, as they may by default."""
    _checked(_library().prctl(_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")


def map_account(uid: int, above: int, gid: int, group_above: int, /) -> None:
    """Let this user namespace have one account and one group, by their numbers here and in the namespace above."""
    # Bytes: this process may not be able to read the interpreter, with its encodings.
    for name, text in (
        ("setgroups", b"deny"),
        ("gid_map", b"%d %d 1" % (gid, group_above)),
        ("uid_map", b"%d %d 1" % (uid, above)),
    ):
        with open(f"/proc/self/{name}", "wb", buffering=0) as file:  # noqa: PTH123 - once, in a child
            file.write(text)


def raise_loopback() -> None:
    """Bring the loopback interface of this network namespace up. Raises `OSError`."""
    import fcntl  # noqa: PLC0415 - these two are used once, by the starter's child
    import socket  # noqa: PLC0415 - as above

    request = _LOOPBACK.ljust(_NAME_BYTES, b"\0") + _UP.to_bytes(2, "little")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SET_FLAGS, request.ljust(_REQUEST_BYTES, b"\0"))
        except OSError as error:
            raise OSError(error.errno, f"loopback: {error.strerror}") from None


def cut_off(network: str) -> None:
    """Let no gateway get packets for a network such as `127.0.0.0/8` from this network namespace. Raises `OSError`.

    A socket that is bound to a device looks for such an address on the link itself. Addresses of the namespace are
    reached as before: they come first.
    """
    import socket  # noqa: PLC0415 - as above

    address, _, bits = network.partition("/")
    kind = struct.pack("=8BI", socket.AF_INET, int(bits), 0, 0, _MAIN_TABLE, _STATIC, 0, _UNREACHABLE, 0)
    destination = struct.pack("=HH", 8, _DESTINATION) + socket.inet_aton(address)
    length = _NETLINK_HEADER.size + len(kind) + len(destination)
    header = _NETLINK_HEADER.pack(length, _NEW_ROUTE, _CREATE_AND_ANSWER, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.send(header + kind + destination)
        answer = sock.recv(_ANSWER_BYTES)
    number = -int.from_bytes(answer[_NETLINK_HEADER.size :][:4], sys.byteorder, signed=True)
    if number != 0:
        raise OSError(number, f"no route for {network}: {os.strerror(number)}")


def _last_capability() -> int:
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:  # noqa: PTH123 - read once
        return int(file.read())


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
