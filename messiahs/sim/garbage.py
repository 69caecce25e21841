"""Garbage collection during a simulation: rare, since few objects of a simulation are in cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATIONS: Final = 100_000
"""Net allocations after which the youngest generation is collected."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Exclude the present objects from collections until the end, and collect new ones rarely."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
