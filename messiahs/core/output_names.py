"""Names of what an attempt leaves behind (MESSIAHS 5.3.3). Commands of users load this, so it needs nothing else."""

from collections.abc import Collection
from typing import Final

LOGS: Final = ("stdout", "stderr")
"""Outputs that every attempt has."""
DECLARED_PREFIX: Final = "work/"
"""Precedes the path of a declared output in the task's working directory."""


def is_declared(path: str, declared: Collection[str]) -> bool:
    """Whether a path in the working directory was declared, or lies below a declared folder."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        return False
    return any("/".join(parts[:length]) in declared for length in range(1, len(parts) + 1))
