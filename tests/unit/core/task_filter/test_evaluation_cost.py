"""What a requirement costs over the views of neighbors is known before, and bounded."""

from itertools import combinations

import pytest

from messiahs.core.interface.messages import DenyCode, SchedDeny, SchedRequest
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.task_filter.matching import COMPARISON_LIMIT
from messiahs.core.vectors.compaction import CLASS_LIMIT
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import VALUES, Overview
from messiahs.core.vectors.vectors import Interval, MachineClass, Vector
from messiahs.language.predicate.predicates import parse_predicate
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, message_in, request, sent

NAMES = "abcdefghijklmnopqrstuvw"


def _saying_much(least: int) -> Vector:
    """Return a view of as many classes as there may be, which say the same of each attribute and differ in it.

    Buckets from 8 on are several numbers wide, so that each class has two values.
    """
    said = [Interval(bucket, bucket) for bucket in range(least, least + CLASS_LIMIT)]
    return Vector(tuple(MachineClass(count=1, attributes=tuple((name, each) for name in NAMES)) for each in said))


def _equalities(count: int) -> str:
    return " or ".join([f"${one} = ${other}" for one, other in combinations(NAMES, 2)][:count])


def _comparisons(text: str, *views: Vector) -> int:
    indexed = {SystemId(f"s{place}"): IndexedVector(view) for place, view in enumerate(views)}
    return Overview().total(indexed, parse_predicate(text).cost)


@pytest.mark.parametrize(
    ("text", "comparisons"),
    [
        ("", 0),
        ("$a > 1", 1),
        ("$a > 1 and ($b < 2 or not 1 = 1)", 3),
        ("$a < $b", 1 + 128),
        ("$a <> $b", 1 + 2 * 128),
        ("$a < $b or $a < $b", 2 + 128),
        ("$a < $b or $b > $a", 2 + 128),
        ("$a < $b or $a <= $b", 2 + 2 * 128),
        ("$a < $b and (1 = 1 or not $a = $c)", 3 + 3 * 128),
        ("$a eq $b", 1),
        ("$a = $nobody", 1 + 128),
        ('$a = $b and $a eq "x"', 0),
    ],
)
def test_attributes_that_are_compared_are_paid_for_by_their_values_once(text: str, comparisons: int) -> None:
    assert _comparisons(text, _saying_much(8)) == comparisons


def test_views_that_say_the_same_are_paid_for_once_and_those_that_say_very_much_by_themselves() -> None:
    views = [_saying_much(8 + CLASS_LIMIT * number) for number in range(1 + VALUES // 128)]
    assert _comparisons("$a > $b", *views[:1], *views[:1]) == 1 + 128
    assert _comparisons("$a > $b", *views[:2]) == 1 + 2 * 128
    assert _comparisons("$a > $b", *views) == len(views) * (1 + 128)
    assert _comparisons("$a > 1", *views) == 1


def test_what_would_cost_too_much_is_refused_before_it_is_judged(rig: Rig) -> None:
    views = [_saying_much(8 + CLASS_LIMIT * number) for number in range(2)]
    for system, said in zip((PARENT, SIBLING), views, strict=True):
        rig.see(system, said)
    few, many = _equalities(100), _equalities(250)
    assert _comparisons(few, *views) <= COMPARISON_LIMIT < _comparisons(many, *views)
    assert sent(rig.hear(CHILD, request(1, requirement=few)), SchedRequest)
    actions = rig.hear(CHILD, request(2, search=SearchId(b"t" * 16), requirement=many))
    (reason,) = message_in(actions, SchedDeny).reasons
    assert reason.code is DenyCode.BAD_PREDICATE
    assert reason.text == (
        f"the requirement compares two attributes too often: {_comparisons(many, *views)} comparisons over the views "
        f"of neighbors, at most {COMPARISON_LIMIT} are allowed"
    )
    assert sent(actions, SchedRequest) == ()
