"""How tests wait: for a condition. No other file of the tests sleeps, which `tests/unit/test_tidy.py` checks.

The deadlines only bound a hang: they are far beyond what a slow machine needs. A test that is expected to fail may be
given a shorter one, in seconds, in the environment variable `TESTS_PATIENCE`.
"""

import asyncio
import os
import time
from collections.abc import Callable

PATIENCE = "TESTS_PATIENCE"
PATIENCE_SECONDS = float(os.environ.get(PATIENCE, "180"))
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.01, 0.1
"""Between two looks: a longer time after a longer wait, for looks take the processor from what they wait for."""


def eventually(is_so: Callable[[], object], what: object = "", *, seconds: float = PATIENCE_SECONDS) -> None:
    """Return once a condition holds; fail, and show `what`, if it does not within the deadline."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + seconds, f"not within {seconds} s: {what or is_so}"
        time.sleep(_interval(began))


async def until(is_so: Callable[[], object], what: object = "", *, seconds: float = PATIENCE_SECONDS) -> None:
    """Return once a condition holds, while the event loop runs; fail as `eventually` does."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + seconds, f"not within {seconds} s: {what or is_so}"
        await asyncio.sleep(_interval(began))


def let_pass(seconds: float) -> None:
    """Let time pass where slowness or idleness is itself what is tested or measured; never to wait for an effect."""
    time.sleep(seconds)


async def let_pass_in_loop(seconds: float) -> None:
    """Let time pass while the event loop runs, on the same condition."""
    await asyncio.sleep(seconds)


def _interval(began: float) -> float:
    return min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, (time.monotonic() - began) / 20))
