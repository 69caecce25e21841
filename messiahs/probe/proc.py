"""The probe that measures the machine on which it runs."""

import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.probe.console import keyboard_idle_seconds
from messiahs.probe.contract import CORES_OWN, KEYBOARD_IDLE

_WHOLE = 10_000
"""100 %, in the catalogue's unit for shares."""


class ProcProbe:
    """Measures processors, memory, load, the disk on which tasks write, and the use of the console.

    `tasks` returns a folder on that disk, which need not exist yet. `attributes` override measurements; `console` is a
    file that replaces its terminals. The load covers the time since the previous measurement, or since the probe was
    made.
    """

    def __init__(self, attributes: Mapping[str, Value], tasks: Callable[[], Path], console: Path | None = None) -> None:
        self._given = {name: value for name, value in attributes.items() if name not in CORES_OWN}
        self._tasks, self._console = tasks, console
        # Constant values are read once, because platform reads files.
        self._constant: dict[str, Value] = {"arch": platform.machine(), "os": platform.system()}
        self._times = _busy_and_total()
        self._load = 0

    def measure(self) -> SDV:
        """Measure the machine now."""
        memory = psutil.virtual_memory()
        found: dict[str, Value] = {
            **self._constant,
            "nproc": len(os.sched_getaffinity(0)),
            "total_mem": memory.total,
            "avail_mem": memory.available,
            "load": self._current_load(),
            **_disk(self._tasks()),
            **self._keyboard_idle(),
            **self._given,
        }
        found.setdefault("slots", found["nproc"])
        return SDV(sorted_pairs(found))

    def _keyboard_idle(self) -> dict[str, Value]:
        idle = keyboard_idle_seconds(self._console)
        return {} if idle is None else {KEYBOARD_IDLE: idle}

    def _current_load(self) -> int:
        busy, total = _busy_and_total()
        busy_before, total_before = self._times
        # Within one tick of the kernel there is no new value: the last load is reported again.
        if total > total_before:
            self._load = min(_WHOLE, max(0, round(_WHOLE * (busy - busy_before) / (total - total_before))))
            self._times = busy, total
        return self._load


def _busy_and_total() -> tuple[float, float]:
    times = psutil.cpu_times()
    # user and nice already include guests.
    total = sum(times) - times.guest - times.guest_nice
    return total - times.idle - times.iowait, total


def _disk(path: Path) -> dict[str, Value]:
    """Return the size of the disk and its free space; nothing if they are unknown."""
    for folder in (path, *path.parents):
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            # The folder for tasks is created with the first task.
            continue
        except OSError:
            break
        return {"total_disk": found.f_blocks * found.f_frsize, "avail_disk": found.f_bavail * found.f_frsize}
    return {}
