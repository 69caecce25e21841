"""How many examples a law is tried with."""

from hypothesis import settings

FULL = 100
"""Examples of a law that names no number, in the full profile."""


def examples(number: int) -> settings:
    """Give settings for this many examples in the full profile, and for the same share of them in another one."""
    return settings(max_examples=max(1, number * settings().max_examples // FULL))
