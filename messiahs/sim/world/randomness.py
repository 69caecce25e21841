"""Random numbers for simulated modules."""

from random import Random


class SeededRandomness:
    """Random numbers determined by a seed."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 - a simulation is repeatable

    def bits(self, count: int, /) -> int:
        """Return a random integer of `count` bits."""
        return self._random.getrandbits(count)
