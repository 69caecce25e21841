"""Places of a view that is being put together: looked for within it, so that no link in it leads out."""

import os
from typing import Final

from messiahs.executor.linux.namespaces import BIND, NO_DEVICES, NO_SET_UID, REMOUNT, mount, open_inside

SAFE: Final = NO_SET_UID | NO_DEVICES
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def have_place(base: str, place: str, *, is_folder: bool) -> None:
    """Have something at a place of the view, with the folders above it."""
    try:
        os.close(open_inside(base, place))
    except FileNotFoundError:
        above, name = os.path.split(place)
        if above != "/":
            have_place(base, above, is_folder=True)
        folder = open_inside(base, above)
        try:
            if is_folder:
                os.mkdir(name, dir_fd=folder)
            else:
                os.close(os.open(name, NEW_FILE, 0o644, dir_fd=folder))
        finally:
            os.close(folder)


def mount_inside(base: str, place: str, source: str, /, *, flags: int) -> None:
    """Show a folder or file at a place of the view, with flags.

    The place is looked for within the view: a mount by its path would follow links of an image on the machine.
    """
    for origin, change in ((source, 0), ("none", REMOUNT | flags)):
        # The second time it is what was mounted there.
        target = open_inside(base, place)
        try:
            mount(origin, f"/proc/self/fd/{target}", flags=BIND | change)
        finally:
            os.close(target)


def mounted() -> set[str]:
    """Return the places of all mounts."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - read once
        return {line.split(" ", 5)[4].replace("\\040", " ") for line in file}
