"""What users are told when a disk is full on which the client writes for itself."""

import errno
from pathlib import Path

from messiahs.config.disk import FULL


def why_not_written(error: OSError, folder: str | Path, *, what: str, size_bytes: int, variable: str) -> str:
    """Return which disk is full, what was to be written there, and what to do; empty for any other error.

    Another folder takes its place if the environment variable names it.
    """
    if error.errno not in FULL:
        return ""
    whose = "is full" if error.errno == errno.ENOSPC else "has no more room for your account (a quota)"
    needed = f"{what} ({size_bytes >> 20} MiB of files)"
    return (
        f"the disk of {folder} {whose}, where {needed} is kept: free space there, or set {variable} to another folder"
    )
