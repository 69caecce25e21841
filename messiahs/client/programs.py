"""Programs that tasks bring: a compiled one runs only on machines with its instruction set."""

import posixpath
import re
import struct
from collections.abc import Mapping
from typing import Final

HEADER_BYTES: Final = 20
"""As much of the beginning of a file as tells its instruction set."""
_ARCHS: Final = {
    (22, ">"): "s390x",
    (21, "<"): "ppc64le",
    (21, ">"): "ppc64",
    (62, "<"): "x86_64",
    (183, "<"): "aarch64",
    (243, "<"): "riscv64",
    (258, "<"): "loongarch64",
}
"""By the machine of an ELF file and the order of its bytes: what `uname -m` says where such files of 64 bits run."""
_64_BITS: Final = 2
_ORDERS: Final = {1: "<", 2: ">"}
_NAMED: Final = re.compile(r"\$arch(?!\w)")


def arch_of(header: bytes, /) -> str:
    """Return the instruction set of a program of 64 bits, from the beginning of its file; empty for other files."""
    if len(header) < HEADER_BYTES or header[:4] != b"\x7fELF" or header[4] != _64_BITS:
        return ""
    order = _ORDERS.get(header[5], "")
    return _ARCHS.get((struct.unpack_from(f"{order}H", header, 18)[0], order), "") if order else ""


def requirement_of_program(command: str, archs: Mapping[str, str], /, *, stated: str) -> str:
    """Return what a machine must have to run the program that a task begins with, if the task brings it.

    `archs` has the instruction sets of the inputs that are compiled programs, by name. Empty without one, and if the
    requirement that the user has stated says something about `$arch`.
    """
    is_brought = "/" in command and not command.startswith("/")
    arch = archs.get(posixpath.normpath(command), "") if is_brought else ""
    return f'$arch eq "{arch}"' if arch and not _NAMED.search(stated) else ""
