"""Status vectors: their bytes on the wire, and the processor time of making one, for few machines and a million."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.attributes import KEY_ATTRIBUTES, Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.vectors.compaction import compact
from messiahs.core.vectors.vectors import MachineClass, Vector, vector_of
from messiahs.wire.codec import status_vector_to_bytes
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes

FEW, MANY = 10, 1_000_000
_GIB = 1 << 30
_SECOND_NS = 1_000_000_000


def rows() -> tuple[Row, ...]:
    """Return the row about vectors."""
    return (
        Row(
            name="vector",
            what="a status vector on the wire",
            budgets=tuple(Budget(figure=_size_of(machines), at_least=4096, aim=2048) for machines in (FEW, MANY)),
            enter=_made,
        ),
    )


def _size_of(machines: int) -> str:
    return f"{machines:,} machines"


@contextmanager
def _made(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    random = Random(3)
    vectors = {
        FEW: Vector(tuple(_class(random, 1) for _ in range(FEW))),
        MANY: Vector(tuple(_class(random, MANY // sizes.classes) for _ in range(sizes.classes))),
    }

    def measure() -> list[Reading]:
        readings = []
        for machines, vector in vectors.items():
            begun_at = time.process_time()
            small = compact(vector, keys=KEY_ATTRIBUTES)
            took_seconds = time.process_time() - begun_at
            if small.machines != machines:
                raise RuntimeError(f"{machines} machines became {small.machines}")
            message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=small, period_ns=_SECOND_NS, age_ns=0)
            readings += [
                Reading(_size_of(machines), "bytes", len(status_vector_to_bytes(message))),
                Reading(
                    f"making it of {_size_of(machines)} in {len(vector.classes):,} classes", "ms", 1000 * took_seconds
                ),
            ]
        return readings

    yield (Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),)


def _class(random: Random, count: int) -> MachineClass:
    """Return machines of one kind; hardly two kinds are alike."""
    slots, memory = 2 ** random.randint(0, 7), random.randint(1, 512) * _GIB
    said: dict[str, Value] = {
        "speed": random.randint(100, 5000),
        "nproc": slots,
        "slots": slots,
        "free_slots": random.randint(0, slots),
        "total_mem": memory,
        "avail_mem": random.randint(0, memory),
        "total_disk": 1000 * _GIB,
        "avail_disk": random.randint(0, 1000) * _GIB,
        "load": random.randint(0, 10_000),
        "queue_length": random.randint(0, 20),
        "willingness": 100,
        "arch": random.choice(("x86_64", "aarch64", "riscv64")),
        "os": random.choice(("Linux", "FreeBSD")),
        "site": f"site-{random.randint(1, 40)}",
    }
    (machine,) = vector_of(SDV(sorted_pairs(said))).classes
    return MachineClass(count=count, attributes=machine.attributes)
