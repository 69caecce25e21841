"""Names of systems, as topology files, joins and assignments may give them (MESSIAHS 5).

They are folders, arguments of commands and parts of task ids.
"""

import re
from typing import Final

from messiahs.core.model.attributes import STRING_LIMIT_BYTES

NAME: Final = re.compile(r"[a-z0-9-]+", re.ASCII)
_RESERVED_ENDINGS: Final = ("sock", "json", "lock", "log", "pid")
"""Endings of files that lie beside the modules' folders, which are named after the modules."""


def problem_with_name(name: str) -> str:
    """Return why a system cannot have a name; empty if it can."""
    labels = name.split(".")
    if not all(NAME.fullmatch(label) for label in labels):
        return "a name is small letters, digits and `-`, joined by dots"
    if name.startswith("-"):
        return "a name does not begin with `-`, or commands would take it for an option"
    if labels[-1].isdigit():
        return "the last part of a name is not all digits, or it would look like a task's id"
    if len(name) > STRING_LIMIT_BYTES:
        return f"a name has at most {STRING_LIMIT_BYTES} characters"
    if name == "tls" or labels[-1] in _RESERVED_ENDINGS:
        return "this name is used by a file beside the modules' folders"
    return ""
