"""Files of tasks: inputs before they run, and outputs that their attempts left (MESSIAHS 5.3.3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

DESCRIPTION_LIMIT_BYTES: Final = 320 << 10
"""Maximum length of the description of a task's inputs and declared outputs.

A message has room for it, the command (128 KiB) and the contents of small inputs (512 KiB).
"""
ENTRY_BYTES: Final = 64
"""What an input or declared output counts in that description, beside its name and the target of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """An input of a task: `name` is a relative path in its working directory, the hash identifies the content.

    It is a file, or, with an empty hash, a symbolic link with a target or an empty folder.
    """

    name: str
    sha256: bytes
    size_bytes: int
    is_executable: bool = False
    link_target: str = ""
    is_folder: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it has a content."""
        return not self.link_target and not self.is_folder


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def link_target(self) -> str: ...


def entry_bytes(name: str, link_target: str = "") -> int:
    """Return the length of the description of an input or declared output, more than it takes on the wire."""
    # The names of files can have bytes that are not UTF-8, until they are refused.
    return ENTRY_BYTES + len(name.encode(errors="surrogatepass")) + len(link_target.encode(errors="surrogatepass"))


def description_bytes(inputs: Iterable[_Named], outputs: Iterable[str] = ()) -> int:
    """Return the length of the description of a task's inputs and declared outputs."""
    return sum(entry_bytes(one.name, one.link_target) for one in inputs) + sum(map(entry_bytes, outputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An output of an attempt at its executor: `stdout`, `stderr`, or `work/PATH` for a declared output.

    It is a file, a symbolic link with a target, or an empty folder.
    """

    name: str
    size_bytes: int
    is_executable: bool = False
    link_target: str = ""
    is_folder: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it has a content."""
        return not self.link_target and not self.is_folder
