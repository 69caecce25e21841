"""Causes: why an attempt ended otherwise than by its own exit or by a signal from outside."""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why an attempt ended; the word stands in records, on the wire, and in the starter's frames."""

    NONE = ""
    """Its process exited, or a signal from outside ended it."""
    KILLED = "killed"
    """Its user cancelled the task."""
    TIME_LIMIT = "time_limit"
    LOST = "lost"
    """Whatever ran it is gone, and how it ended is unknown."""
    LEASE_EXPIRED = "lease_expired"
    UNBOUND = "unbound"
    """Its origin does not know it, or knows it to run elsewhere."""
    MOVED = "moved"
    """Its origin has placed its task elsewhere."""
    VACATED = "vacated"
    """An owner rule made it leave, after a grace period."""
    REVOKED = "revoked"
    """An owner rule, or the administrator, killed it."""
    REFUSED = "refused"
    """Its executor does not take it."""
    NEVER_ARRIVED = "unknown"
    """Its executor was asked for it by name, and never had it."""
    UNREACHABLE = "unreachable"
    """Its executor is known to be up, but tasks cannot be brought to it."""
    NOT_FOUND = "not_found"
    """Its program does not exist, or is not executable."""
    SPAWN_FAILED = "spawn_failed"
    """Its process could not be made, so that nothing ran; a retry may help."""
    STAGING_FAILED = "staging_failed"
    """An input could not be put in its place, so that nothing ran; a retry elsewhere may help."""
    OUTPUT_MISSING = "output_missing"
    """A declared output did not exist at the end."""
    TOO_MANY_OUTPUTS = "too_many_outputs"
    """Declared folders held more files than can be brought home."""
    TOO_MUCH_OUTPUT = "too_much_output"
    """All outputs together exceed their limit."""


OUTPUT_CAUSES: Final = (Cause.OUTPUT_MISSING, Cause.TOO_MANY_OUTPUTS, Cause.TOO_MUCH_OUTPUT)
"""The task exited by itself, but its outputs did not come home as declared."""
