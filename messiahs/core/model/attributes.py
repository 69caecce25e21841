"""The catalogue of attributes: the name, unit, range and subject of everything in a description (MESSIAHS 5.1, 5.2).

All code that checks, converts or documents an attribute reads it here.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypedDict, Unpack

from messiahs.core.model.dates import LAST_DAY

Value = int | str
"""An attribute's value: a signed 64-bit integer or a string of at most 64 bytes."""

INTEGER_LOWEST, INTEGER_HIGHEST = -(2**63), 2**63 - 1
PRIORITY_HIGHEST = 100
"""The highest priority that a user can state; the lowest is its negative."""
WILLINGNESS_HIGHEST = 100
STRING_LIMIT_BYTES = 64
EXTENSION_LIMIT = 8
MOST_MACHINES = 2**40 - 1
"""Largest count of one class; greater counts are lowered to it."""


class Kind(StrEnum):
    """The paper's two basic types (MESSIAHS 5.4)."""

    INTEGER = "integer"
    STRING = "string"


class Unit(StrEnum):
    """The unit of an integer attribute."""

    NONE = ""
    BYTES = "bytes"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    SHARE = "1/100 %"
    CLOCK = "minutes of the day"
    DATE = "days since 1970-01-01"


class Scope(StrEnum):
    """The subject of an attribute."""

    MACHINE = "machine"
    TASK = "task"
    HERE = "here"
    CANDIDATE = "cand"
    PEER = "peer"
    NOW = "now"
    PRESENT_TASK = "present task"


SCOPES: dict[Scope, tuple[str, ...]] = {
    Scope.MACHINE: ("here",),
    Scope.TASK: ("task",),
    Scope.HERE: ("here",),
    Scope.CANDIDATE: ("cand",),
    Scope.PEER: ("peer",),
    Scope.NOW: ("now",),
    Scope.PRESENT_TASK: ("task",),
}
"""Words allowed between `$` and the name in a policy file, by the scope that they select."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One row of the catalogue; `name` is written without `$`.

    Values lie between `low` and `high`, or among `choices`, where these are set. An optional attribute may be unset:
    users may omit it, or it is measured only where a sensor exists.
    """

    name: str
    kind: Kind = Kind.INTEGER
    unit: Unit = Unit.NONE
    scope: Scope
    supplier: str
    meaning: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    is_optional: bool = False


class _Traits(TypedDict, total=False):
    kind: Kind
    unit: Unit
    low: int | None
    high: int | None
    choices: tuple[str, ...]


def _machine(name: str, meaning: str, *, supplier: str = "probe", **traits: Unpack[_Traits]) -> Attribute:
    return Attribute(name=name, scope=Scope.MACHINE, supplier=supplier, meaning=meaning, **traits)


def _task(name: str, meaning: str, *, supplier: str = "user", **traits: Unpack[_Traits]) -> Attribute:
    return Attribute(name=name, scope=Scope.TASK, supplier=supplier, meaning=meaning, **traits)


def _seen(scope: Scope, name: str, meaning: str, *, supplier: str = "module", **traits: Unpack[_Traits]) -> Attribute:
    return Attribute(name=name, scope=scope, supplier=supplier, meaning=meaning, **traits)


def _optional(attribute: Attribute) -> Attribute:
    return replace(attribute, is_optional=True)


_COUNT = _Traits(low=0)
_TEXT = _Traits(kind=Kind.STRING)
_BYTES = _Traits(unit=Unit.BYTES, low=0)
_SECONDS = _Traits(unit=Unit.SECONDS, low=0)
_MILLISECONDS = _Traits(unit=Unit.MILLISECONDS, low=0)
_SHARE = _Traits(unit=Unit.SHARE, low=0, high=10_000)
_RELATION = _Traits(kind=Kind.STRING, choices=("self", "child", "sibling", "parent"))
ISOLATIONS = ("process", "sandbox", "bubblewrap")
"""Ways of containing tasks: as ordinary processes of an account, and in sandboxes of two makes."""
_ISOLATION = _Traits(kind=Kind.STRING, choices=ISOLATIONS)
_DIAL = _Traits(kind=Kind.STRING, choices=("policy", "on", "off"))
_BALANCE = "processor time given to it, less the time it gave"
_ROUND_TRIP = "time in which a vector to it is answered, to the nearest machine that it represents"
_THROUGHPUT = "bytes a second of files sent to it, to the best connected machine that it represents"
_INPUT_SIZE = "size of its inputs, rounded up to a power of two; 0 below 1 MiB"
_A_RELATION = "its relation to this system: self, child, sibling or parent"

CATALOGUE: tuple[Attribute, ...] = (
    _optional(_machine("speed", "relative processor speed", supplier="topology", **_COUNT)),
    _machine("nproc", "processors", **_COUNT),
    _machine("slots", "processors that tasks may use, in total", **_COUNT),
    _machine("free_slots", "slots that no claim holds", supplier="module", **_COUNT),
    _machine("total_mem", "memory installed", **_BYTES),
    _machine("avail_mem", "memory that a new task can have", **_BYTES),
    _optional(_machine("total_disk", "size of the disk that holds the tasks' folders", **_BYTES)),
    _optional(_machine("avail_disk", "disk that a new task can have", **_BYTES)),
    _machine("load", "busy share of all processors", **_SHARE),
    _machine("queue_length", "tasks accepted and not yet started", supplier="module", **_COUNT),
    _machine("wait_time", "mean time that recent tasks waited here for a slot", supplier="module", **_SECONDS),
    _machine("utilization", "share of the slots that claims hold", supplier="module", **_SHARE),
    _optional(
        _machine(
            "willingness",
            "willingness to accept new tasks, 0 to 100",
            supplier="policy",
            low=0,
            high=WILLINGNESS_HIGHEST,
        )
    ),
    _optional(_machine("comm_cost", "cost of reaching the machine", supplier="policy")),
    _machine("arch", "instruction set, as reported by `uname -m`", **_TEXT),
    _machine("os", "operating system, as reported by `uname -s`", **_TEXT),
    _optional(_machine("isolation", "how it contains tasks", supplier="starter", **_ISOLATION)),
    _optional(_task("mem", "memory that the task needs", **_BYTES)),
    _optional(_task("disk", "disk that the task needs", **_BYTES)),
    _task("cpus", "slots that the task takes (default 1)", **_COUNT),
    _optional(_task("est_time", "estimated and longest allowed run time", **_SECONDS)),
    _task("input_size", _INPUT_SIZE, supplier="module", **_BYTES),
    _optional(_task("comm_load", "bytes that the task is expected to send and receive while it runs", **_BYTES)),
    _task("origin", "system that the task comes from", supplier="module", **_TEXT),
    _task("user", "user that submitted the task", supplier="module", **_TEXT),
    _optional(_task("priority", "rank among the tasks of the same user")),
)

WELL_KNOWN: tuple[Attribute, ...] = (
    _optional(_machine("gpus", "GPUs, each of which one task at a time has for itself", supplier="topology", **_COUNT)),
    _optional(_machine("free_gpus", "GPUs that no claim holds", supplier="module", **_COUNT)),
    _optional(_task("gpus", "GPUs that the task has for itself", **_COUNT)),
    _optional(_task("image", "SHA-256 of the image in which the task runs, in hexadecimal", **_TEXT)),
    _optional(_task("environment", "SHA-256 of the packed environment of the task, in hexadecimal", **_TEXT)),
    _optional(_task("python", "interpreter that the environment of the task needs", **_TEXT)),
)
"""Extension attributes that need no declaration in a policy file, and may have one with another range."""

SEEN_BY_THE_OWNER: tuple[Attribute, ...] = (
    _optional(_seen(Scope.HERE, "keyboard_idle", "time since the console was last used", supplier="probe", **_SECONDS)),
    _seen(Scope.HERE, "tasks", "tasks on this machine", **_COUNT),
    _seen(Scope.HERE, "waiting", "tasks waiting here", **_COUNT),
    _seen(Scope.HERE, "waiting_above", "waiting tasks that rank above the running one", **_COUNT),
    _seen(Scope.HERE, "lent", "what its owner says (`messiahs lend`): on, off, or policy for nothing", **_DIAL),
    _seen(Scope.CANDIDATE, "name", "name of the system that could be asked", **_TEXT),
    _seen(Scope.CANDIDATE, "relation", "child, sibling or parent; the own machine is tried before them", **_RELATION),
    _seen(Scope.CANDIDATE, "age", "age of its latest status vector", **_SECONDS),
    _seen(Scope.CANDIDATE, "count", "machines that it represents", **_COUNT),
    _optional(_seen(Scope.CANDIDATE, "balance", _BALANCE, unit=Unit.SECONDS)),
    _optional(_seen(Scope.CANDIDATE, "round_trip", _ROUND_TRIP, **_MILLISECONDS)),
    _optional(_seen(Scope.CANDIDATE, "throughput", _THROUGHPUT, **_BYTES)),
    _seen(Scope.PEER, "name", "name of the requesting system", **_TEXT),
    _seen(Scope.PEER, "relation", _A_RELATION, **_RELATION),
    _optional(_seen(Scope.PEER, "balance", _BALANCE, unit=Unit.SECONDS)),
    _optional(_seen(Scope.PEER, "round_trip", "time in which a vector to it is answered", **_MILLISECONDS)),
    _optional(_seen(Scope.PEER, "throughput", "bytes a second of files sent to it", **_BYTES)),
    _seen(Scope.NOW, "clock", "local time of day", unit=Unit.CLOCK, low=0, high=24 * 60 - 1),
    _seen(Scope.NOW, "weekday", "day of the week from 1 (Monday)", low=1, high=7),
    _seen(Scope.NOW, "day", "day of the month", low=1, high=31),
    _seen(Scope.NOW, "month", "month of the year", low=1, high=12),
    _seen(Scope.NOW, "date", "local date", unit=Unit.DATE, low=0, high=LAST_DAY),
    _seen(Scope.PRESENT_TASK, "from", "neighbor that sent the task, or the own name", **_TEXT),
    _optional(_seen(Scope.PRESENT_TASK, "relation", "relation of the sender: self for the own name", **_RELATION)),
    _seen(Scope.PRESENT_TASK, "waited", "time that it has waited here", **_SECONDS),
    _seen(Scope.PRESENT_TASK, "ran", "time that it has run", **_SECONDS),
    _seen(Scope.PRESENT_TASK, "suspended", "time that it has been suspended", **_SECONDS),
    _optional(_seen(Scope.PRESENT_TASK, "mem_used", "memory that it uses", supplier="starter", **_BYTES)),
    _optional(_seen(Scope.PRESENT_TASK, "mem_reserved", "memory reserved for it", **_BYTES)),
    _optional(
        _seen(
            Scope.PRESENT_TASK,
            "checkpointable",
            "1 if it can be moved without losing its work, as declared by its user",
            supplier="user",
            low=0,
            high=1,
        )
    ),
    _seen(Scope.PRESENT_TASK, "attempt", "number of the attempt", **_COUNT),
)
"""Attributes that no description carries: only the owner's own policy can use them.

A present task is the task being judged by this system; its TDV is known as well.
"""

KNOWN_ONCE_HERE = frozenset(each.name for each in SEEN_BY_THE_OWNER if each.scope is Scope.PRESENT_TASK) - {
    "from",
    "checkpointable",
}
"""Attributes known only once a task is here; a request also has a sender, and a task may declare `checkpointable`."""

OWNERS_FACTS = frozenset(each.name for each in SEEN_BY_THE_OWNER if each.scope is Scope.HERE)
"""Facts about the own machine that never leave it: no vector carries them and no requirement of a task can use them."""

MACHINE_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.MACHINE}
TASK_ATTRIBUTES = {attribute.name: attribute for attribute in CATALOGUE if attribute.scope is Scope.TASK}

ADDED_ATTRIBUTES = frozenset({"isolation"})
"""Attributes of machines since release 0.1.0, whose modules take them for extensions: they count towards the limit."""

KEY_ATTRIBUTES: tuple[str, ...] = ("arch", "avail_mem", "free_gpus", "free_slots", "os", "speed")
"""Attributes on which the classes of an update vector may always be split, in order of name."""
