"""Names of files in a task's working directory: relative, inside it, and without conflicts."""

from dataclasses import dataclass, field
from typing import Self

from messiahs.config.task_names import bad_name, checked_name
from messiahs.core.model.output_names import Declared
from messiahs.core.model.task_files import entry_bytes
from messiahs.core.model.texts import has_control
from messiahs.errors import ClientError


def check_received_name(name: str, declared: Declared) -> None:
    """Refuse the name of an output unless it was declared or lies below a declared folder.

    It must be a plain relative path without control characters, because it is shown on terminals.
    """
    if checked_name(name) != name or has_control(name):
        raise bad_name(name, "it is not a plain relative path")
    if not declared.covers(name):
        raise ClientError(f"`{name}` was not declared as an output of the task: nothing was written")


@dataclass(slots=True)
class TakenNames:
    """Names in use and their sources, in addition to those in `common`, which is shared and not modified (mutable)."""

    common: Self | None = None
    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    own_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """The length of the description of everything that has these names."""
        return self.own_bytes + (self.common.total_bytes if self.common is not None else 0)

    def take(self, name: str, source: str, *, link_target: str = "") -> None:
        """Reserve a name for a source; a `ClientError` names both sources if the name is taken as a file or folder."""
        above = [name[:end] for end, letter in enumerate(name) if letter == "/"]
        other = self.owner_of(name) or next(filter(None, map(self.owner_of_file, above)), None)
        if other is not None:
            raise ClientError(
                f"`{other}` and `{source}` would both be `{name}` in the task's working directory: "
                "give one of them another name with SRC:DST",
                code=ClientError.USAGE,
            )
        self.files[name] = source
        self.own_bytes += entry_bytes(name, link_target)
        for folder in above:
            self.folders.setdefault(folder, source)

    def owner_of(self, name: str) -> str | None:
        """Return the source of a name, or of something in the folder of that name."""
        own = self.owner_of_file(name) or self.folders.get(name)
        return own or (self.common.owner_of(name) if self.common is not None else None)

    def owner_of_file(self, name: str) -> str | None:
        """Return the source of the file with a name."""
        return self.files.get(name) or (self.common.owner_of_file(name) if self.common is not None else None)
