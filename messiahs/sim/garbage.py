"""Garbage collection while a simulation runs: rare, since little of what a simulation drops is in cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATIONS: Final = 100_000
"""Net allocations after which the youngest generation is collected."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Leave what exists when this begins out of all collections until it ends, and collect the rest rarely."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
