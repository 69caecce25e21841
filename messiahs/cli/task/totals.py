"""What the last attempts of ended tasks used, one by one and together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.task.lines import duration_text, ran_seconds
from messiahs.client.connection import Document
from messiahs.client.locating import array_of, member_of

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What was used, None where that is not known: run times without suspensions, and these times the slots."""

    ran_s: float | None
    cost_s: float | None
    cpu_s: float | None
    peak_memory_bytes: int | None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of a table."""
        ran, cost = ("-" if each is None else duration_text(each) for each in (self.ran_s, self.cost_s))
        cpu = "-" if self.cpu_s is None else f"{self.cpu_s:.1f} s"
        memory = "-" if self.peak_memory_bytes is None else f"{self.peak_memory_bytes / _MIB:.1f} MiB"
        return ran, cost, cpu, memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The ended tasks of an array (at least one), or a single task."""

    id: str
    tasks: Sequence[Document]

    @property
    def failed(self) -> int:
        """How many ended without exit code 0."""
        return failed_of(self.tasks)

    @property
    def first(self) -> Document:
        """The task with the lowest number."""
        return min(self.tasks, key=lambda task: member_of(task["id"]))

    @property
    def last(self) -> Document:
        """The task that ended last."""
        return max(self.tasks, key=lambda task: str(task["ended_at"]))

    @property
    def document(self) -> Document:
        """Return it as JSON."""
        used = total_of(self.tasks)
        return {
            "id": self.id,
            "tasks": len(self.tasks),
            "failed": self.failed,
            "ended_at": self.last["ended_at"],
            "ran_s": used.ran_s,
            "cost_s": used.cost_s,
            "cpu_s": used.cpu_s,
            "peak_memory_bytes": used.peak_memory_bytes,
            "user": self.first.get("user"),
            "name": self.first.get("name"),
        }


def used_by(task: Document) -> Used:
    """Return what an ended task used; its cost is that of the ledger."""
    ran, usage = ran_seconds(task, datetime.fromisoformat(task["ended_at"])), task.get("usage") or {}
    return Used(
        ran_s=ran,
        cost_s=None if ran is None else ran * int(task["tdv"]["cpus"]),
        cpu_s=usage.get("cpu_s"),
        peak_memory_bytes=usage.get("peak_memory_bytes"),
    )


def total_of(tasks: Iterable[Document]) -> Used:
    """Return the sums of what is known of some tasks, and the highest peak of one of them."""
    used = [used_by(task) for task in tasks]
    ran, cost, cpu = ([each.ran_s for each in used], [each.cost_s for each in used], [each.cpu_s for each in used])
    peaks = [each.peak_memory_bytes for each in used if each.peak_memory_bytes is not None]
    return Used(ran_s=_sum(ran), cost_s=_sum(cost), cpu_s=_sum(cpu), peak_memory_bytes=max(peaks) if peaks else None)


def failed_of(tasks: Iterable[Document]) -> int:
    """Return how many tasks ended without exit code 0."""
    return sum(exit_code_of(task) != 0 for task in tasks)


def by_array(tasks: Iterable[Document]) -> list[Together]:
    """Return the tasks of each array together, the one whose last task ended first before the others."""
    found: dict[str, list[Document]] = {}
    for task in tasks:
        found.setdefault(array_of(task["id"]), []).append(task)
    together = [Together(id=name, tasks=some) for name, some in found.items()]
    return sorted(together, key=lambda one: str(one.last["ended_at"]))


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [each for each in amounts if each is not None]
    return sum(known) if known else None
