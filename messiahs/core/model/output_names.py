"""Names of the outputs of an attempt (MESSIAHS 5.3.3). User commands load this module, so it imports nothing heavy."""

from collections.abc import Collection
from typing import Final

LOGS: Final = ("stdout", "stderr")
"""Outputs that every attempt has."""
DECLARED_PREFIX: Final = "work/"
"""Precedes the path of a declared output in the task's working directory."""


def is_declared(path: str, declared: Collection[str]) -> bool:
    """Return whether a path in the working directory was declared, or lies below a declared folder."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        return False
    # A path may have thousands of folders: prefixes are compared only at the lengths of declared names.
    lengths = frozenset(map(len, declared))
    ends = (*(end for end, letter in enumerate(path) if letter == "/"), len(path))
    return any(path[:end] in declared for end in ends if end in lengths)
