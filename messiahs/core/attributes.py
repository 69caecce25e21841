"""The one catalogue of attributes: what descriptions may say, in which unit, about whom (MESSIAHS 5.1, 5.2).

Everything that checks, converts or documents an attribute reads it here.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

Value = int | str
"""An attribute's value: a signed 64-bit integer or a string of at most 64 bytes."""

INTEGER_LOWEST, INTEGER_HIGHEST = -(2**63), 2**63 - 1
STRING_LIMIT_BYTES = 64
EXTENSION_LIMIT = 8


class Kind(StrEnum):
    """The paper's two basic types (MESSIAHS 5.4)."""

    INTEGER = "integer"
    STRING = "string"


class Unit(StrEnum):
    """What one step of an integer means."""

    NONE = ""
    BYTES = "bytes"
    SECONDS = "seconds"
    SHARE = "1/100 %"
    CLOCK = "minutes of the day"


class Scope(StrEnum):
    """Whom an attribute describes."""

    MACHINE = "machine"
    TASK = "task"
    HERE = "here"
    CANDIDATE = "cand"
    PEER = "peer"
    NOW = "now"
    PRESENT_TASK = "present task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One row of the catalogue; `name` is written without `$`. Values are from `low` to `high` where those are told."""

    name: str
    kind: Kind = Kind.INTEGER
    unit: Unit = Unit.NONE
    scope: Scope
    supplier: str
    meaning: str
    low: int | None = None
    high: int | None = None


def _machine(
    name: str, meaning: str, *, kind: Kind = Kind.INTEGER, unit: Unit = Unit.NONE, supplier: str = "probe"
) -> Attribute:
    return Attribute(name=name, kind=kind, unit=unit, scope=Scope.MACHINE, supplier=supplier, meaning=meaning)


def _task(
    name: str, meaning: str, *, kind: Kind = Kind.INTEGER, unit: Unit = Unit.NONE, supplier: str = "user"
) -> Attribute:
    return Attribute(name=name, kind=kind, unit=unit, scope=Scope.TASK, supplier=supplier, meaning=meaning)


def _seen(scope: Scope, name: str, meaning: str, *, kind: Kind = Kind.INTEGER, unit: Unit = Unit.NONE) -> Attribute:
    supplier = "probe" if name == "keyboard_idle" else "module"
    return Attribute(name=name, kind=kind, unit=unit, scope=scope, supplier=supplier, meaning=meaning)


def _bounded(attribute: Attribute, low: int, high: int) -> Attribute:
    return replace(attribute, low=low, high=high)


CATALOGUE: tuple[Attribute, ...] = (
    _machine("speed", "relative processor speed", supplier="topology"),
    _machine("nproc", "processors"),
    _machine("slots", "processors that tasks may use, in total"),
    _machine("free_slots", "slots that no claim holds", supplier="module"),
    _machine("total_mem", "memory installed", unit=Unit.BYTES),
    _machine("avail_mem", "memory that a new task can have", unit=Unit.BYTES),
    _machine("total_disk", "size of the disk that holds the tasks' folders", unit=Unit.BYTES),
    _machine("avail_disk", "disk that a new task can have", unit=Unit.BYTES),
    _bounded(_machine("load", "busy share of all processors", unit=Unit.SHARE), 0, 10_000),
    _machine("queue_length", "tasks accepted and not yet started", supplier="module"),
    _machine("wait_time", "mean time that recent tasks waited here for a slot", unit=Unit.SECONDS, supplier="module"),
    _bounded(
        _machine("utilization", "share of the slots that claims hold", unit=Unit.SHARE, supplier="module"), 0, 10_000
    ),
    _bounded(_machine("willingness", "wish for new tasks, 0 to 100", supplier="policy"), 0, 100),
    _machine("comm_cost", "cost of reaching the machine", supplier="policy"),
    _machine("arch", "instruction set, as `uname -m` says it", kind=Kind.STRING),
    _machine("os", "operating system, as `uname -s` says it", kind=Kind.STRING),
    _task("mem", "memory that the task needs", unit=Unit.BYTES),
    _task("disk", "disk that the task needs", unit=Unit.BYTES),
    _task("cpus", "slots that the task takes (1 unless told)"),
    _task("est_time", "estimated and longest allowed run time", unit=Unit.SECONDS),
    _task("comm_load", "expected communication", supplier="user"),
    _task(
        "origin", "system that the task comes from, as the last border shows it", kind=Kind.STRING, supplier="module"
    ),
    _task("user", "user that submitted the task", kind=Kind.STRING, supplier="module"),
    _task("priority", "wish of the user among his own tasks"),
)

SEEN_BY_THE_OWNER: tuple[Attribute, ...] = (
    _seen(Scope.HERE, "keyboard_idle", "time since somebody last used the console", unit=Unit.SECONDS),
    _seen(Scope.HERE, "tasks", "tasks that are here"),
    _seen(Scope.HERE, "waiting", "tasks that wait here"),
    _seen(Scope.HERE, "waiting_above", "waiting tasks that rank above the one that runs"),
    _seen(Scope.CANDIDATE, "name", "name of the system that could be asked", kind=Kind.STRING),
    _seen(Scope.CANDIDATE, "relation", "what it is to this system: self, child, sibling or parent", kind=Kind.STRING),
    _seen(Scope.CANDIDATE, "age", "age of what it said last", unit=Unit.SECONDS),
    _seen(Scope.CANDIDATE, "count", "machines that it speaks for"),
    _seen(Scope.PEER, "name", "name of the system that asks", kind=Kind.STRING),
    _seen(Scope.PEER, "relation", "what it is to this system: self, child, sibling or parent", kind=Kind.STRING),
    _seen(Scope.PEER, "balance", "processor time given to it, less what it gave", unit=Unit.SECONDS),
    _bounded(_seen(Scope.NOW, "clock", "local time of day", unit=Unit.CLOCK), 0, 24 * 60 - 1),
    _bounded(_seen(Scope.NOW, "weekday", "day of the week from 1 (Monday)"), 1, 7),
    _bounded(_seen(Scope.NOW, "day", "day of the month"), 1, 31),
    _seen(Scope.PRESENT_TASK, "from", "neighbor that sent the task, or the own name", kind=Kind.STRING),
    _seen(Scope.PRESENT_TASK, "waited", "time that it has waited here", unit=Unit.SECONDS),
    _seen(Scope.PRESENT_TASK, "ran", "time that it has run", unit=Unit.SECONDS),
    _seen(Scope.PRESENT_TASK, "suspended", "time that it has been suspended", unit=Unit.SECONDS),
    _seen(Scope.PRESENT_TASK, "mem_used", "memory that it uses", unit=Unit.BYTES),
    _seen(Scope.PRESENT_TASK, "mem_reserved", "memory that it was promised", unit=Unit.BYTES),
    _bounded(_seen(Scope.PRESENT_TASK, "checkpointable", "1 if it can be moved without losing its work"), 0, 1),
    _seen(Scope.PRESENT_TASK, "attempt", "number of the attempt"),
)
"""What no description carries: an owner's own policy alone can ask for it.

A present task is one that stands before this system, whose TDV is known too.
"""

MACHINE_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.MACHINE}
TASK_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.TASK}

KEY_ATTRIBUTES: tuple[str, ...] = ("arch", "avail_mem", "free_slots", "os", "speed")
"""What classes of an update vector may always split on (in order of name)."""
