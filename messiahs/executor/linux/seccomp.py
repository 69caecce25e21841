"""A filter of system calls for tasks: a hand-made program of classic BPF that names what it forbids (seccomp(2)).

Everything else is allowed. What a capability would be needed for is mostly not listed, because tasks have none.
Programs of another architecture (32-bit programs on a 64-bit kernel, x32) are killed, because their calls have other
numbers.
"""

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

FORBIDDEN: Final[dict[str, tuple[int, int]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
"""System calls that fail with EPERM, with their numbers on x86-64 and aarch64."""

_CLONE, _CLONE3, _UNSHARE, _PERSONALITY, _IOCTL, _SOCKET, _SECCOMP = range(7)
_NUMBERS: Final = ((56, 435, 272, 135, 16, 41, 317), (220, 435, 97, 92, 29, 198, 277))
_ARCHITECTURES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32: Final = 0x40000000
_NEW_USER: Final = 0x10000000
_PERSONALITY_QUERY: Final = 0xFFFFFFFF
_PUSH_INPUT, _LINUX_CONSOLE = 0x5412, 0x541C
"""TIOCSTI and TIOCLINUX, which type into a terminal."""
_NEW_LISTENER: Final = 8
"""Flag of a filter whose maker decides about the calls of others."""
_ALG, _VSOCK = 38, 40
"""Families of sockets that reach the kernel's ciphers, and the host of a virtual machine."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_MODE_FILTER, _SET_SECCOMP = 2, 22


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Argument:
    """A call that fails if an argument (its lower 32 bits) compares like this with a value."""

    number: int
    position: int
    jump: int
    value: int
    error: int = errno.EPERM


def why_not() -> str:
    """Return why there is no filter for this machine; empty if there is one."""
    machine = os.uname().machine
    return "" if machine in _ARCHITECTURES else f"the numbers of system calls on {machine} are not known"


def program(machine: str, *, has_network: bool = True) -> bytes:
    """Return the filter as an array of `struct sock_filter`, for the machine as `uname` names it.

    Without a network it also refuses sockets of the internet. Raises `KeyError` for an unknown machine.
    """
    column, architecture = _ARCHITECTURES[machine]
    calls = _NUMBERS[column]
    code = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, architecture, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        code += [_step(_JUMP_AT_LEAST, _X32, 0, 1), _step(_RETURN, _KILL)]
    # The C library tries `clone` next, whose flags can be seen here.
    code += _refused(calls[_CLONE3], errno.ENOSYS)
    for numbers in FORBIDDEN.values():
        code += _refused(numbers[column], errno.EPERM)
    for rule in _arguments(calls, has_network=has_network):
        code += _compared(rule)
    code += _unusual_personality(calls[_PERSONALITY])
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def install() -> None:
    """Filter the calls of this process and its descendants, for ever. It must have given up new privileges.

    Raises `OSError`.
    """
    code = program(os.uname().machine)
    library = ctypes.CDLL(None, use_errno=True)
    filtered = _Program(length=len(code) // 8, instructions=code)
    if library.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filtered), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"system calls cannot be filtered: {os.strerror(number)}")


def _arguments(calls: tuple[int, ...], *, has_network: bool) -> Iterable[_Argument]:
    for call in (_CLONE, _UNSHARE):
        yield _Argument(number=calls[call], position=0, jump=_JUMP_ANY_BIT, value=_NEW_USER)
    for request in (_PUSH_INPUT, _LINUX_CONSOLE):
        yield _Argument(number=calls[_IOCTL], position=1, jump=_JUMP_EQUAL, value=request)
    yield _Argument(number=calls[_SECCOMP], position=1, jump=_JUMP_ANY_BIT, value=_NEW_LISTENER)
    for family in (_ALG, _VSOCK, *(() if has_network else (socket.AF_INET, socket.AF_INET6))):
        yield _Argument(number=calls[_SOCKET], position=0, jump=_JUMP_EQUAL, value=family, error=errno.EAFNOSUPPORT)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refused(number: int, error: int) -> list[bytes]:
    return [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _FAIL | error)]


def _compared(rule: _Argument) -> list[bytes]:
    return [
        _step(_JUMP_EQUAL, rule.number, 0, 4),
        _step(_LOAD, _ARGUMENTS_AT + 8 * rule.position),
        _step(rule.jump, rule.value, 0, 1),
        _step(_RETURN, _FAIL | rule.error),
        _step(_LOAD, _NUMBER_AT),
    ]


def _unusual_personality(number: int) -> list[bytes]:
    """Allow the ordinary personality, and asking for the present one."""
    return [
        _step(_JUMP_EQUAL, number, 0, 5),
        _step(_LOAD, _ARGUMENTS_AT),
        _step(_JUMP_EQUAL, 0, 2, 0),
        _step(_JUMP_EQUAL, _PERSONALITY_QUERY, 1, 0),
        _step(_RETURN, _FAIL | errno.EPERM),
        _step(_LOAD, _NUMBER_AT),
    ]
