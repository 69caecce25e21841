"""The image of a task, as the starter learns of it."""

from pathlib import Path

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.executor.attempt_values import Staged
from messiahs.executor.protocol.layout import file_name


def image_of(action: StartAttempt, files: Path | None) -> Staged | None:
    """Return the archive of the image in which a task runs; None if it runs without one.

    It has no source unless the task brought it: the file may be there because of another one.
    """
    if not action.image:
        return None
    for one in action.command.inputs:
        if one.name == IMAGE_INPUT and file_name(one.sha256) == action.image:
            source = f"{files}/{action.image}"
            return Staged(name=IMAGE_INPUT, source=source, size_bytes=one.size_bytes, is_executable=False)
    return Staged(name=IMAGE_INPUT, source="", size_bytes=0, is_executable=False)
