"""Environments of programs: a folder that its user packs, and that its task finds at the same path on any machine.

A task names its environment as it does an image: the attribute `environment` is the hash of an archive, which is one of
its inputs. The attribute `python` is the interpreter outside of it that it needs, as a path with its minor version.
"""

from typing import Final

from messiahs.core.model.descriptions import Pairs
from messiahs.core.model.images import hash_in

ENVIRONMENT: Final = "environment"
INTERPRETER: Final = "python"
ENVIRONMENT_INPUT: Final = ".messiahs-environment"
"""Name of the input that is the archive of the environment; the task does not see it."""
ENVIRONMENT_REQUIREMENT: Final = '($isolation eq "sandbox" or $isolation eq "bubblewrap")'
"""What machines fulfil that show an environment to its tasks; those of release 0.1.0 state no isolation."""


SHOWN_LETTERS: Final = 200
"""So much of a path that an archive states is repeated in texts."""


def environment_in(pairs: Pairs) -> str:
    """Return the hash of the environment that a task finds in its place, in hexadecimal; empty if it has none."""
    return hash_in(pairs, ENVIRONMENT)


def interpreter_in(pairs: Pairs) -> str:
    """Return the interpreter that the environment of a task needs beside itself; empty if it needs none, or is long."""
    stated = dict(pairs).get(INTERPRETER)
    return stated if isinstance(stated, str) else ""


def lacking_text(interpreter: str) -> str:
    """Return why an attempt is not started on a machine without the interpreter that its environment needs."""
    return f"this machine has no {interpreter[:SHOWN_LETTERS]}, which the environment of the task needs"
