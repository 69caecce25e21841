"""Whether any process of a tree has ever made a Unix socket: without one, none can hand an open file to others.

A second filter of system calls (seccomp(2)) stops who wants to make one, until this process has noted it.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
from typing import Final

_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SOCKET, _SOCKET_PAIR = {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199}
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _FIRST_ARGUMENT_AT = 0, 16
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE_BYTES: Final = 80
_ANSWER: Final = struct.Struct("=QqiI")
_NUMBER: Final = struct.Struct("=Q")
_GO_ON: Final = 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class UnixSockets:
    """Notes the Unix sockets that descendants of this process make (mutable).

    This process itself must not make any from now on: the kernel would stop it until it has called `let_go_on`, which
    it then never does. Raises `OSError` where Linux cannot do this (before 5.5), and if it was done before.
    """

    def __init__(self) -> None:
        machine = os.uname().machine
        code = _program(machine)
        filtered = _Program(length=len(code) // 8, instructions=code)
        library = ctypes.CDLL(None, use_errno=True)
        # Since Linux 5.19, signals other than one that kills wait, so that a process with a timer asks once.
        for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
            self._listener: int = library.syscall(_SECCOMP[machine], _SET_FILTER, flags, ctypes.byref(filtered))
            if self._listener >= 0 or ctypes.get_errno() != errno.EINVAL:
                break
        if self._listener < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"sockets cannot be noticed: {os.strerror(number)}")
        self.are_made = False
        """Whether one was made, or may be made at any moment."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when somebody waits for `let_go_on`."""
        return self._listener

    def let_go_on(self) -> None:
        """Note that a socket is made, and let who makes it go on."""
        self.are_made = True
        notice = bytearray(_NOTICE_BYTES)
        try:
            _control(self._listener, _RECEIVE, notice)
            (number,) = _NUMBER.unpack_from(notice)
            _control(self._listener, _SEND, _ANSWER.pack(number, 0, 0, _GO_ON))
        except FileNotFoundError:
            # It was killed, or a signal has interrupted it and it asks again.
            pass


def _control(listener: int, request: int, argument: bytes | bytearray) -> None:
    """Make a call of the listener, again after a signal to this process. Raises `OSError`."""
    while True:
        try:
            fcntl.ioctl(listener, request, argument)
        except InterruptedError:
            continue
        return


def _program(machine: str) -> bytes:
    """Return the filter; the architecture was checked by the filter of all tasks."""
    steps = (
        (_LOAD, _NUMBER_AT, 0, 0),
        (_JUMP_EQUAL, _SOCKET[machine], 1, 0),
        (_JUMP_EQUAL, _SOCKET_PAIR[machine], 0, 3),
        (_LOAD, _FIRST_ARGUMENT_AT, 0, 0),
        (_JUMP_EQUAL, socket.AF_UNIX, 0, 1),
        (_RETURN, _NOTIFY, 0, 0),
        (_RETURN, _ALLOW, 0, 0),
    )
    return b"".join(struct.pack("=HBBI", code, if_true, if_false, value) for code, value, if_true, if_false in steps)
