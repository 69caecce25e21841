"""A process that finds itself on a Linux before 5.6."""

import ctypes
import struct

_SET_SECCOMP, _FILTER = 22, 2


def be_on_old_linux() -> None:
    """Let this process, which is root, and its descendants find that there is no `openat2` (437)."""
    no_such_call = 0x50000 | 38
    load, compare, end = 0x20, 0x15, 0x06
    steps = (load, 0, 0, 0), (compare, 0, 1, 437), (end, 0, 0, no_such_call), (end, 0, 0, 0x7FFF0000)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    assert ctypes.CDLL(None, use_errno=True).prctl(_SET_SECCOMP, _FILTER, program, 0, 0) == 0
