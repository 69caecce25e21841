"""Queries of parts of each kind: ordinary ones, and empty ones."""

from collections.abc import Mapping

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import (
    AllocationQuery,
    Asker,
    HeardChange,
    MigrationQuery,
    OwnChange,
    RunningQuery,
    SourceQuery,
    TaskOrderQuery,
    TaskSource,
)
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.vectors import EMPTY, Vector
from tests.unit.language.policy_rig import NOON, candidate, machines, ranking, sdv, tdv

_KEYS = ("arch", "free_slots")


def _sent(vector: Vector, *, waiting: int = 0) -> StatusVector:
    return StatusVector(kind=VectorKind.FOR_PARENTS, vector=vector, period_ns=SECOND, age_ns=0, waiting=waiting)


def _running(ran: int, suspended: int = 0) -> RunningQuery:
    task: dict[str, Value] = {
        "cpus": 1,
        "user": "ann",
        "origin": "x",
        "from": "x",
        "ran": ran,
        "suspended": suspended,
        "waited": 0,
    }
    return RunningQuery(task=task, here={"load": 5000}, now=NOON)


def _source(name: str, waiting: int) -> TaskSource:
    return TaskSource(system=SystemId(name), relation=Relation.CHILD, waiting=waiting, lets_go=not waiting)


def _at(seconds: int) -> Instant:
    return Instant(seconds * SECOND)


_CANDIDATES = (
    candidate("b", {"free_slots": 2}),
    candidate("a", {"free_slots": 8}, {"free_slots": 1}),
    candidate("full", {"free_slots": 0}),
    candidate("lost", lost=True),
    candidate("c", relation=Relation.PARENT, age_ns=MINUTE),
)

QUERIES: Mapping[PartKind, tuple[object, ...]] = {
    PartKind.UPDATE: (
        OwnChange(before=None, after=None, keys=_KEYS),
        OwnChange(before=None, after=sdv(), keys=_KEYS, at=_at(1)),
        OwnChange(before=sdv(load=100), after=sdv(load=9000, cpu="sparc"), keys=_KEYS, at=_at(2)),
        HeardChange(neighbor=SystemId("a"), before=_sent(EMPTY), after=_sent(EMPTY), keys=_KEYS),
        HeardChange(neighbor=SystemId("a"), before=_sent(EMPTY), after=_sent(machines({}), waiting=3), keys=_KEYS),
    ),
    PartKind.LOCATION: (ranking(), ranking(*_CANDIDATES), ranking(*_CANDIDATES[::-1], task=tdv(mem=1 << 50))),
    PartKind.SOURCES: (
        SourceQuery(sources=()),
        SourceQuery(sources=(_source("b", 1), _source("a", 1), _source("c", 0)), at=_at(5)),
    ),
    PartKind.SELECTION: (
        TaskOrderQuery(tasks=(), here={}, now=NOON),
        TaskOrderQuery(tasks=({"cpus": 1, "user": "ann"}, {"cpus": 4, "user": "bob"}), here={}, now=NOON, at=_at(9)),
    ),
    PartKind.MIGRATION: (
        MigrationQuery(tasks=(_running(1),), wanted=1),
        MigrationQuery(tasks=(_running(90), _running(5), _running(200, suspended=7)), wanted=2, at=_at(3)),
    ),
    PartKind.ALLOCATION: tuple(
        AllocationQuery(
            tdv=tdv(),
            asker=Asker(system=SystemId("x"), relation=Relation.CHILD),
            slots=slots,
            wanted=wanted,
            here=sdv().description(),
        )
        for slots, wanted in ((1, 1), (4, 100))
    ),
}
"""By the kinds of parts that policies may name."""
