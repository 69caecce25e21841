"""Capabilities of root that a starter keeps under the tasks' account, so that folders can belong to the daemon's.

They are permitted, and effective only within a `with`. Programs that it starts have none: a task is an ordinary process
of its account.
"""

import ctypes
import os
from collections.abc import Iterable
from typing import Self

CHOWN, DAC_OVERRIDE, FOWNER = 0, 1, 3
"""Change the owner of a folder, change folders of another account, and set their modes."""
KILL, SETGID, SETUID, SETPCAP, NET_ADMIN, SYS_ADMIN = 5, 6, 7, 8, 12, 21
"""Signal other accounts, become one, bound capabilities, set up network namespaces, and make namespaces and mounts."""
SYS_PTRACE = 19
"""See which files processes of other accounts have open."""
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


class Capabilities:
    """Capabilities of this process; all others are dropped. Effective within a `with`, which cannot be nested."""

    def __init__(self, capabilities: Iterable[int]) -> None:
        mask = sum(1 << capability for capability in capabilities)
        self._library = ctypes.CDLL(None, use_errno=True)
        self._header = _Header(version=_VERSION_3, pid=0)
        self._on = (_Data * 2)(_Data(effective=mask, permitted=mask))
        self._off = (_Data * 2)(_Data(effective=0, permitted=mask))
        self._set(self._off)

    def __enter__(self) -> Self:
        """Make them effective. Raises `OSError`."""
        self.switch_on()
        return self

    def __exit__(self, *_: object) -> None:
        """Make them ineffective."""
        self._set(self._off)

    def switch_on(self) -> None:
        """Make them effective for good. Raises `OSError`."""
        self._set(self._on)

    def _set(self, data: "ctypes.Array[_Data]") -> None:
        if self._library.capset(ctypes.byref(self._header), data) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"capabilities cannot be set: {os.strerror(number)}")


def is_permitted(capability: int) -> bool:
    """Whether this process has a capability, or may make it effective."""
    with open("/proc/self/status", "rb") as file:  # noqa: PTH123 - read once
        permitted = next(line.split()[1] for line in file if line.startswith(b"CapPrm:"))
    return bool(int(permitted, 16) >> capability & 1)


def keep_only(capabilities: Iterable[int]) -> None:
    """Drop all capabilities of this process, which stays root, except these, which are effective. Raises `OSError`."""
    Capabilities(capabilities).switch_on()
