"""How work on many bytes tells how far it is."""

from typing import Protocol


class OnProgress(Protocol):
    """Called while bytes are moved: what is done, how many bytes of it are done, and how many there are."""

    def __call__(self, what: str, done_bytes: int, total_bytes: int, /) -> None:
        """Take note of it."""


def silent(_what: str, _done_bytes: int, _total_bytes: int, /) -> None:
    """Take no note of it."""
