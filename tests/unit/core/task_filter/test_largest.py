"""What is said of the machine that comes nearest to a task for which none is large enough."""

import pytest

from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.attributes import Value
from messiahs.core.task_filter.largest import largest_text
from messiahs.core.task_filter.matching import need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, vector_of
from messiahs.language.predicate.predicates import predicate_parser
from tests.unit.core.rig import sdv, tdv

GIB = 1 << 30
MANY_SLOTS = {"slots": 16, "total_mem": 2 * GIB, "total_disk": 8 * GIB}
MUCH_MEMORY = {"slots": 1, "total_mem": 32 * GIB, "total_disk": 4 * GIB}


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"cpus": 64}, "the largest has 16 slots, 2 GiB"),
        ({"mem": 64 * GIB}, "the largest has 1 slot, 32 GiB"),
        ({"cpus": 4, "mem": 16 * GIB}, "the largest has 1 slot, 32 GiB"),
        ({"cpus": 32, "disk": 9 * GIB}, "the largest has 16 slots, 2 GiB, 8 GiB of disk"),
    ],
)
def test_the_machine_that_comes_nearest_is_described(wish: dict[str, Value], text: str) -> None:
    views = [IndexedVector(vector_of(sdv(**said))) for said in (MANY_SLOTS, MUCH_MEMORY)]
    parsed = predicate_parser("")
    assert not isinstance(parsed, BadPredicate)
    need = need_of(tdv(**wish), parsed)
    assert largest_text(need, views) == text
    assert largest_text(need, [IndexedVector(EMPTY)]) == ""
