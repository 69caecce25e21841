"""Causes: why an attempt ended other than by its own exit or by a signal from outside."""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why an attempt ended; the value appears in records, on the wire, and in the starter's frames."""

    NONE = ""
    """Its process exited, or a signal from outside ended it."""
    KILLED = "killed"
    """Its user cancelled the task."""
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    """The kernel killed a process of it, because it or all tasks of the machine used too much memory."""
    LOST = "lost"
    """The process that ran it has disappeared, and how it ended is unknown."""
    LEASE_EXPIRED = "lease_expired"
    UNBOUND = "unbound"
    """Its origin does not know it, or has bound its task elsewhere."""
    MOVED = "moved"
    """Its origin has placed its task elsewhere."""
    VACATED = "vacated"
    """An owner rule removed it, after a grace period."""
    REVOKED = "revoked"
    """An owner rule, or the administrator, killed it."""
    REFUSED = "refused"
    """Its executor does not accept it."""
    DISK_LIMIT = "disk_limit"
    """It used more disk than it stated, or the last part of the disk."""
    NEVER_ARRIVED = "unknown"
    """Its executor was queried for it by name, and never had it."""
    UNREACHABLE = "unreachable"
    """Its executor is known to be up, but no task stream reaches it."""
    NOT_FOUND = "not_found"
    """Its program does not exist, or is not executable."""
    SPAWN_FAILED = "spawn_failed"
    """Its process could not be created, so nothing ran; a retry may help."""
    STAGING_FAILED = "staging_failed"
    """An input could not be put in its place, so nothing ran; a retry elsewhere may help."""
    IMAGE_UNUSABLE = "image_unusable"
    """The image of its task is damaged, forbidden, or for other machines, so nothing ran; nothing is tried again."""
    ENVIRONMENT_UNUSABLE = "environment_unusable"
    """The environment of its task is damaged or forbidden, so nothing ran; nothing is tried again."""
    NO_INTERPRETER = "no_interpreter"
    """The machine lacks the interpreter that the environment of its task needs, so nothing ran; others may have it.

    What is there may also be of another version.
    """
    NO_PLACE = "no_place"
    """The machine cannot show the environment of its task at its path, so nothing ran; others may be able to."""
    NO_FOLDER = "no_folder"
    """The folder in which it is to start cannot be entered, so nothing ran."""
    OUTPUT_MISSING = "output_missing"
    """A declared output did not exist at the end."""
    TOO_MANY_OUTPUTS = "too_many_outputs"
    """Declared folders hold more files than can be fetched."""
    TOO_MUCH_OUTPUT = "too_much_output"
    """All outputs together exceed their limit."""


START_CAUSES: Final = (Cause.SPAWN_FAILED, Cause.STAGING_FAILED)
"""The machine could not start the task; the task may be the reason, as one whose image is larger than the free disk."""
UNFIT_CAUSES: Final = (Cause.NO_INTERPRETER, Cause.NO_PLACE)
"""The machine and the environment of the task do not fit, which is no fault of the machine."""
OUTPUT_CAUSES: Final = (Cause.OUTPUT_MISSING, Cause.TOO_MANY_OUTPUTS, Cause.TOO_MUCH_OUTPUT)
"""The task exited by itself, but its outputs could not be fetched as declared."""
LOST_CAUSES: Final = (
    Cause.LOST,
    Cause.LEASE_EXPIRED,
    *START_CAUSES,
    *UNFIT_CAUSES,
    Cause.UNBOUND,
    Cause.VACATED,
    Cause.REVOKED,
    Cause.MOVED,
)
"""The task may run elsewhere, and is bound anew."""
