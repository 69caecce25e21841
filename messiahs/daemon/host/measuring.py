"""The job that measures the machine of a module."""

from collections.abc import Callable
from functools import partial

from messiahs.channel.periodic_jobs import repeat
from messiahs.core.interface.events import Measured
from messiahs.core.model.counted import Counted
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.executor.contract import Executor
from messiahs.probe.contract import Probe

_PERIOD_SECONDS = 1.0


async def measure_periodically(
    probe: Probe,
    executor: Executor,
    *,
    on_measured: Callable[[Measured], None],
    counted: Callable[[], tuple[Counted, ...]] = tuple,
    period_seconds: float = _PERIOD_SECONDS,
) -> None:
    """Measure the machine, with its counted things, at once and then after each `period_seconds`.

    After an error, the last values stay.
    """
    await repeat(
        partial(_measure, probe, executor, counted, on_measured),
        period_seconds=period_seconds,
        failure="the machine could not be measured, and its last values stay",
    )


async def _measure(
    probe: Probe,
    executor: Executor,
    counted: Callable[[], tuple[Counted, ...]],
    on_measured: Callable[[Measured], None],
) -> None:
    # A starter that replaces a lost one may contain tasks in another way.
    found = {**probe.measure().description(), "isolation": executor.isolation}
    on_measured(Measured(sdv=SDV(sorted_pairs(found)), counted=counted()))
