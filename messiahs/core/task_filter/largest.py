"""The machine that comes nearest to a task for which none is large enough, in words."""

from collections.abc import Iterable
from typing import Final

from messiahs.core.interface.policies import Need
from messiahs.core.model.task_limits import size_text
from messiahs.core.vectors.buckets import lowest_in
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Interval, MachineClass

_GIB: Final = 1 << 30


def largest_text(need: Need, views: Iterable[IndexedVector]) -> str:
    """Return what the nearest machine of all views has in total; empty if none reports that.

    Views have rounded values, so sizes are rounded down.
    """
    wanted = {"slots": need.slots, "total_mem": need.mem_bytes, "total_disk": need.disk_bytes}
    asked = [name for name, amount in wanted.items() if amount]
    best = max(
        (sizes for view in views for each in view.vector.classes if asked[0] in (sizes := _sizes(each))),
        key=lambda sizes: (min(sizes.get(name, 0) / wanted[name] for name in asked), sizes["slots"]),
        default=None,
    )
    if best is None:
        return ""
    slots = f"{best['slots']} slot{'' if best['slots'] == 1 else 's'}"
    memory = _rounded(best["total_mem"]) if "total_mem" in best else ""
    disk = f"{_rounded(best['total_disk'])} of disk" if need.disk_bytes and "total_disk" in best else ""
    return f"the largest has {', '.join(filter(None, (slots, memory, disk)))}"


def _sizes(machines: MachineClass) -> dict[str, int]:
    values = dict(machines.attributes)
    return {
        name: max(0, lowest_in(value.high))
        for name in ("slots", "total_mem", "total_disk")
        if isinstance(value := values.get(name), Interval)
    }


def _rounded(size_bytes: int) -> str:
    step = _GIB if size_bytes >= _GIB else 1 << 20
    return size_text(size_bytes - size_bytes % step if size_bytes >= step else size_bytes)
