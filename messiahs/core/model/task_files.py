"""Files of tasks: inputs before they run, and outputs that their attempts left (MESSIAHS 5.3.3)."""

from dataclasses import dataclass


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
