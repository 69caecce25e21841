"""Histories: what keeping them adds to the vector of a neighbor, in processor time, and how large they are."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sys import getsizeof

from messiahs.core.interface.events import ControlReceived, LinkUp, VectorReceived
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import Epoch, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.module import SchedulingModule
from messiahs.core.state.module import Identity, ModuleState
from messiahs.core.vectors.vectors import Vector, coalesce, vector_of
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.predicates import predicate_parser
from tests.benchmarks.measuring import OURS, Contender, Entrant, Reading, Row, Sizes

CHILD, ME = SystemId("child"), SystemId("me")
NAMES = ("load", "free_slots", "avail_mem", "avail_disk", "utilization", "queue_length", "wait_time", "speed")
CLASSES = (1, 64)
_VECTORS = 400


def rows() -> tuple[Row, ...]:
    """Return the row about histories."""
    return (Row(name="remembering", what="the vector of a neighbor, with histories", budgets=(), enter=_kept),)


@contextmanager
def _kept(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    del sizes

    def measure() -> list[Reading]:
        readings = [
            Reading(f"{count} histories, {classes} classes", "us", _vector_us(count, classes))
            for classes in CLASSES
            for count in (0, 1, len(NAMES))
        ]
        return [*readings, Reading("one history", "bytes", _size_bytes())]

    yield (Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),)


def _module(count: int) -> SchedulingModule:
    kept = f"history {{ keep {', '.join(f'${name}' for name in NAMES[:count])} over 4min; }}" if count else ""
    child = Neighbor(system=CHILD, is_child=True, is_primary_child=True)
    state = ModuleState(
        identity=Identity(system=ME, epoch=Epoch(1), address="me:1"),
        neighbors={CHILD: child},
        policy=parse_policy(f"{kept} accept from any {{ limit 9 tasks; }}", file="kept.policy"),
        parse=predicate_parser,
        randomness=_Zeros(),
    )
    module = SchedulingModule(state)
    module.handle(LinkUp(neighbor=CHILD), Instant(0))
    hello = Hello(system=CHILD, epoch=Epoch(2), wire_versions=(1,), release="1")
    module.handle(ControlReceived(sender=CHILD, message=hello), Instant(0))
    return module


def _vector(number: int, classes: int) -> Vector:
    """Return a vector whose loads differ from those of the last one."""
    machines = (
        SDV(sorted_pairs({**dict.fromkeys(NAMES, 100), "slots": 1 << place % 40, "speed": place, "load": number * 40}))
        for place in range(classes)
    )
    return coalesce(map(vector_of, machines), keys=("slots", "speed"))


def _heard(module: SchedulingModule, classes: int) -> float:
    """Return the processor time in which a module handles vectors that arrive every second."""
    vectors = [_vector(number % 200, classes) for number in range(_VECTORS)]
    begun_at = time.process_time()
    for number, vector in enumerate(vectors):
        message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=vector, period_ns=SECOND, age_ns=0)
        module.handle(VectorReceived(sender=CHILD, message=message), Instant(number * SECOND))
    return time.process_time() - begun_at


def _vector_us(count: int, classes: int) -> float:
    return 1e6 * _heard(_module(count), classes) / _VECTORS


def _size_bytes() -> float:
    """Return the memory of one history, with everything that it refers to and no other one does."""
    module = _module(1)
    _heard(module, 1)
    series = module.state.updates.histories.series[CHILD]["load"]
    seen = {id(None): 0}
    parts: list[object] = [series, series.since, series.length_ns, series.value, series.marks]
    parts += [part for totals in (series.totals, *series.marks) for part in (totals, *totals)]
    for part in parts:
        seen.setdefault(id(part), getsizeof(part))
    return float(sum(seen.values()))


class _Zeros:
    def bits(self, count: int, /) -> int:
        del count
        return 0
