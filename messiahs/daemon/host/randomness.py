"""Random numbers for the core of a live module."""

import os


class SystemRandomness:
    """Random numbers of the operating system."""

    def bits(self, count: int, /) -> int:
        """Return a random integer of `count` bits."""
        return int.from_bytes(os.urandom((count + 7) // 8)) >> (-count % 8)
