"""What is remembered of the last sum never changes the next one, also if only one of them is rounded."""

import pytest

from messiahs.core.vectors.division import Division
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import MachineClass, Vector, interval

KEYS = ("arch", "site", "speed")
MANY = 2_100
"""So many points that they are rounded."""


def class_of(*, arch: str, site: str, speed: int, count: int = 1) -> MachineClass:
    pairs = (("arch", arch), ("site", site), ("speed", interval(speed, speed)))
    return MachineClass(count=count, attributes=pairs)


def divided(classes: list[MachineClass], memory: Memory | None = None) -> Vector:
    division = Division((Vector(tuple(classes)),), {}, keys=KEYS, memory=memory)
    division.work()
    return division.vector


@pytest.mark.parametrize("first_others", [MANY, 50])
@pytest.mark.parametrize("sites", [5, 100])
def test_a_sum_that_is_rounded_otherwise_than_the_last_one_is_what_it_is_without_memory(
    first_others: int, sites: int
) -> None:
    same = [class_of(arch="arm", site=f"s{n % sites}", speed=3 * n, count=1_000 + 700 * n % 4_001) for n in range(100)]
    memory = Memory()
    for others in (first_others, MANY + 50 - first_others):
        classes = [*same, *(class_of(arch="sparc", site="t", speed=n) for n in range(others))]
        assert divided(classes, memory) == divided(classes)
