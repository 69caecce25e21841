"""What a task may name: files and folders of its working directory, and variables of its environment."""

import re
from typing import Final

from messiahs.core.model.folder_links import leads_above
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, OptionValueError

_PART_LIMIT_BYTES = 255
_VARIABLE: Final = re.compile(r"[^\s=#]+")
"""The name of a variable, as a file of variables has it without quotes."""


def checked_name(name: str) -> str:
    """Normalise the name of a file; a `ClientError` if it leads out of the working directory."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/") or ".." in parts:
        raise bad_name(name, "it leads out of its folder")
    if not parts:
        raise bad_name(name, "it names nothing in the task's working directory")
    _check_characters(name)
    return "/".join(parts)


def bad_name(name: str, why: str) -> ClientError:
    """Return the error for a name that no file of a task can have."""
    return ClientError(f"`{printable(name)}` cannot be the name of a task's file: {why}", code=ClientError.USAGE)


def check_folder(folder: str) -> None:
    """Refuse an empty folder to start in, and one above the working folder, which no machine has a use for.

    Raises `ClientError`.
    """
    if not folder:
        raise ClientError("`cwd` is empty: name a folder, or leave it out", code=ClientError.USAGE)
    if leads_above(folder):
        text = f"`cwd` {printable(folder)} leads above the working folder of the task"
        raise ClientError(f"{text}: a folder of the machine begins with /", code=ClientError.USAGE)


def check_variable(name: str) -> None:
    """Refuse what cannot name a variable; raises `OptionValueError`."""
    if not _VARIABLE.fullmatch(name):
        raise OptionValueError(f"`env`: `{printable(name)}` names no variable: a name has no blanks, `=` or `#`")


def _check_characters(name: str) -> None:
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise bad_name(name, "it is not UTF-8") from None
    if b"\0" in encoded:
        raise bad_name(name, "it has a NUL character")
    if any(len(part) > _PART_LIMIT_BYTES for part in encoded.split(b"/")):
        raise bad_name(name, f"a part of it is longer than {_PART_LIMIT_BYTES} bytes")
