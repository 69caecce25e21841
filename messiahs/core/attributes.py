"""The one catalogue of attributes: what descriptions may say, in which unit, about whom (MESSIAHS 5.1, 5.2).

Everything that checks, converts or documents an attribute reads it here.
"""

from dataclasses import dataclass
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


class Scope(StrEnum):
    """Whom an attribute describes."""

    MACHINE = "machine"
    TASK = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One row of the catalogue; `name` is written without `$`."""

    name: str
    kind: Kind = Kind.INTEGER
    unit: Unit = Unit.NONE
    scope: Scope
    supplier: str
    meaning: str


def _machine(
    name: str, meaning: str, *, kind: Kind = Kind.INTEGER, unit: Unit = Unit.NONE, supplier: str = "probe"
) -> Attribute:
    return Attribute(name=name, kind=kind, unit=unit, scope=Scope.MACHINE, supplier=supplier, meaning=meaning)


def _task(
    name: str, meaning: str, *, kind: Kind = Kind.INTEGER, unit: Unit = Unit.NONE, supplier: str = "user"
) -> Attribute:
    return Attribute(name=name, kind=kind, unit=unit, scope=Scope.TASK, supplier=supplier, meaning=meaning)


CATALOGUE: tuple[Attribute, ...] = (
    _machine("speed", "relative processor speed", supplier="topology"),
    _machine("nproc", "processors"),
    _machine("slots", "processors that tasks may use, in total"),
    _machine("free_slots", "slots that no claim holds", supplier="module"),
    _machine("total_mem", "memory installed", unit=Unit.BYTES),
    _machine("avail_mem", "memory that a new task can have", unit=Unit.BYTES),
    _machine("total_disk", "size of the disk that holds the tasks' folders", unit=Unit.BYTES),
    _machine("avail_disk", "disk that a new task can have", unit=Unit.BYTES),
    _machine("load", "busy share of all processors", unit=Unit.SHARE),
    _machine("queue_length", "tasks accepted and not yet started", supplier="module"),
    _machine("wait_time", "mean time that recent tasks waited here for a slot", unit=Unit.SECONDS, supplier="module"),
    _machine("utilization", "share of the slots that claims hold", unit=Unit.SHARE, supplier="module"),
    _machine("willingness", "wish for new tasks, 0 to 100", supplier="policy"),
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

MACHINE_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.MACHINE}
TASK_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.TASK}

KEY_ATTRIBUTES: tuple[str, ...] = ("arch", "avail_mem", "free_slots", "os", "speed")
"""What classes of an update vector may always split on (in order of name)."""
