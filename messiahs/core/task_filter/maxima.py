"""The most that one task may have on the own machine; a task that states more is denied, not ended later."""

from collections.abc import Iterator

from messiahs.core.model.descriptions import TDV
from messiahs.core.model.task_limits import Maxima, size_text


def why_beyond(tdv: TDV, maxima: Maxima) -> str:
    """Return what a task states that is more than the machine gives to one task; empty if nothing is."""
    return "; ".join(_texts(tdv, maxima))


def _texts(tdv: TDV, maxima: Maxima) -> Iterator[str]:
    stated = tdv.description()
    for name, what, most in (("mem", "memory", maxima.memory_bytes), ("disk", "disk", maxima.disk_bytes)):
        value = stated.get(name)
        if most is not None and isinstance(value, int) and value > most:
            yield f"it states {size_text(value)} of {what}: at most {size_text(most)} here"
    seconds = stated.get("est_time")
    if maxima.run_seconds is not None and isinstance(seconds, int) and seconds > maxima.run_seconds:
        yield f"it states {seconds} s of run time: at most {maxima.run_seconds} s here"
