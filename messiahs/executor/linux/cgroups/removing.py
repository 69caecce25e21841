"""Removing the control groups of a starter that has ended."""

import os
from contextlib import suppress

from messiahs.executor.linux.cgroups.files import remove_folder
from messiahs.executor.linux.cgroups.finding import Place


def remove_groups(place: Place, stem: str) -> None:
    """Remove the group named `stem` in a place, with those below it; one in which a process is stays."""
    for folder in filter(None, (place.version2, *place.version1.values())):
        with suppress(OSError):
            for name in os.listdir(f"{folder}/{stem}"):  # noqa: PTH208 - strings, as everywhere here
                remove_folder(f"{folder}/{stem}/{name}")
            remove_folder(f"{folder}/{stem}")
