"""What bubblewrap gets for a box of a task."""

from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.executor.starter.bubblewrap.boxes import Boxes
from messiahs.executor.starter.bubblewrap.view import BoxView


def files_in_memory() -> list[str]:
    """Return the descriptors of this process that are files for bubblewrap."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        # That of the folder itself is gone.
        with suppress(FileNotFoundError):
            found += [link.name] if str(link.readlink()).startswith("/memfd:bwrap") else []
    return sorted(found)


def test_nothing_stays_open_of_a_box_whose_files_cannot_all_be_opened() -> None:
    boxes = Boxes(
        path="prlimit",
        programs="/usr/bin",
        scorer="choom",
        bubblewrap="bwrap",
        processes=1,
        arguments=(),
        network="outbound",
        view=BoxView(),
        filter=-1,
        strict_filter=-1,
    )
    before = files_in_memory()
    with pytest.raises(FileNotFoundError):
        boxes.files("/work", {}, status=-1)
    assert files_in_memory() == before
