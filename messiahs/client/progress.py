"""Reporting the progress of transfers."""

from typing import Protocol


class OnProgress(Protocol):
    """Called while bytes are moved: what is being done, bytes done, and bytes in total."""

    def __call__(self, what: str, done_bytes: int, total_bytes: int, /) -> None:
        """Receive the progress."""


def silent(_what: str, _done_bytes: int, _total_bytes: int, /) -> None:
    """Ignore the progress."""
