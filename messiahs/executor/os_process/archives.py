"""What a task brings, as the starter learns of it: its inputs, and what is unpacked for it."""

from pathlib import Path
from typing import Final

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.model.environments import ENVIRONMENT_INPUT
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.executor.attempt_values import Staged
from messiahs.executor.protocol.layout import file_name

_ARCHIVES: Final = (IMAGE_INPUT, ENVIRONMENT_INPUT)


def archive_of(action: StartAttempt, files: Path | None) -> Staged | None:
    """Return the archive of the image or environment of a task; None if it has neither.

    It has no source unless the task brought it: the file may be there because of another one. A task that names both,
    which no module sends, has none that could be used.
    """
    named = dict(zip(_ARCHIVES, (action.image, action.environment), strict=True))
    name = next((name for name, digest in named.items() if digest), "")
    if not name:
        return None
    brought = () if all(named.values()) else action.command.inputs
    for one in brought:
        if one.name == name and file_name(one.sha256) == named[name]:
            source = f"{files}/{named[name]}"
            return Staged(name=name, source=source, size_bytes=one.size_bytes, is_executable=False)
    return Staged(name=name, source="", size_bytes=0, is_executable=False)


def inputs_of(action: StartAttempt, archive: Staged | None, files: Path | None, /) -> tuple[Staged, ...]:
    """Return what is put into the working directory of a task."""
    return tuple(
        Staged(
            name=one.name,
            source=f"{files}/{file_name(one.sha256)}" if one.is_file else "",
            size_bytes=one.size_bytes,
            is_executable=one.is_executable,
            link_target=one.link_target,
            is_folder=one.is_folder,
        )
        for one in action.command.inputs
        if archive is None or one.name != archive.name
    )
