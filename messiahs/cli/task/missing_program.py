"""What to do about a program that a task did not find, and that is here."""

import os
import posixpath
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from messiahs.client.connection import Document
from messiahs.client.words import NOT_EXECUTABLE
from messiahs.core.interface.causes import Cause
from messiahs.core.model.texts import printable


def program_hint(task: Document, argv: Sequence[str], *, inputs: Collection[str], folder: Path) -> str:
    """Return how an ended task would have found its program; empty if it found it, or if that is not known.

    `inputs` are the names of its inputs, and `folder` is where the command was entered.
    """
    if task.get("cause") != Cause.NOT_FOUND or task.get("exit_code") == NOT_EXECUTABLE:
        return ""
    program = argv[0]
    name = posixpath.normpath(program)
    if not program or name.startswith(("/", "..")):
        return ""
    is_named_alone, written = "/" not in program, shlex.quote(f"./{name}")
    if name in inputs:
        # One that begins with ./ was found, and its interpreter was not.
        return printable(f"{program} is an input: run `{written}`") if is_named_alone else ""
    if not _is_program(folder / name, is_executable=is_named_alone):
        return ""
    source = written if "/" not in name else shlex.quote(f"{name}:{name}")
    what = f"./{name} is here: add `--input {source}`"
    return printable(f"{what}, and run `{written}`" if is_named_alone else what)


def _is_program(path: Path, *, is_executable: bool) -> bool:
    """Whether there is such a file, and if `is_executable`, one that this account may execute."""
    try:
        return path.is_file() and (not is_executable or os.access(path, os.X_OK))
    except OSError:
        # Its name is too long.
        return False
