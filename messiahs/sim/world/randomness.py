"""Random numbers for simulated modules."""

from random import Random


class SeededRandomness:
    """Random numbers that a seed decides."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 - a simulation wants to be repeated

    def bits(self, count: int, /) -> int:
        """Give a random integer of `count` bits."""
        return self._random.getrandbits(count)
