"""The machine on which numbers were taken, and whether it was busy with something else."""

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_BUSY_PERCENT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The machine and its other load during the measurement."""

    processor: str
    cores: int
    memory_bytes: int
    kernel: str
    python: str
    load_average: float
    busy_percent: float
    """Share of all cores that other processes used in the second before the start."""

    @property
    def warning(self) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if self.busy_percent < _BUSY_PERCENT:
            return ""
        return (
            f"The machine is not idle: others use {self.busy_percent:.0f} % of it. Rates and times are worse than they "
            "should be; processor time for each task is less disturbed."
        )

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {**asdict(self), "warning": self.warning}


def look_around() -> Surroundings:
    """Measure the surroundings for a second."""
    return Surroundings(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        python=platform.python_version(),
        load_average=os.getloadavg()[0],
        busy_percent=psutil.cpu_percent(interval=1.0),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
