"""Number of examples with which a law is tested."""

from hypothesis import settings

FULL = 100
"""Default number of examples of a law in the full profile."""


def examples(number: int) -> settings:
    """Return settings for this many examples in the full profile, and for a proportional number in another one."""
    return settings(max_examples=max(1, number * settings().max_examples // FULL))
