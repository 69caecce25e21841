"""Evaluation of a predicate over a class of machines: certain for all, possible for one, or false."""

import pytest

from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import VARIOUS, ClassValue, Interval, MachineClass, Vector
from messiahs.language.predicate.predicates import parse_predicate

SURE, POSSIBLE, IMPOSSIBLE = (True, True), (False, True), (False, False)


def _class(some_lack: tuple[str, ...] = (), **attributes: ClassValue) -> MachineClass:
    return MachineClass(count=3, attributes=tuple(sorted(attributes.items())), some_lack=some_lack)


def _between(lowest: int, highest: int) -> Interval:
    return Interval(bucket_of(lowest), bucket_of(highest))


def _judged(text: str, machine_class: MachineClass) -> tuple[bool, bool]:
    surely, could = parse_predicate(text).over(IndexedVector(Vector((machine_class,))))
    return (surely == 1, could == 1)


# 2, 3 and 5 are exact; the bucket of 40 goes to 47.
SMALL = _class(
    a=_between(2, 5),
    three=_between(3, 3),
    big=_between(40, 40),
    b=_between(4, 7),
    cpu="sparc",
    os=VARIOUS,
    half=_between(1, 1),
    some_lack=("half",),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", SURE),
        ("$a < 6", SURE),
        ("$a < 5", POSSIBLE),
        ("$a < 3", POSSIBLE),
        ("$a < 2", IMPOSSIBLE),
        ("$a <= 5", SURE),
        ("$a <= 2", POSSIBLE),
        ("$a <= 1", IMPOSSIBLE),
        ("$a > 1", SURE),
        ("$a > 2", POSSIBLE),
        ("$a > 5", IMPOSSIBLE),
        ("$a >= 2", SURE),
        ("$a >= 5", POSSIBLE),
        ("$a >= 6", IMPOSSIBLE),
        ("$a = 2", POSSIBLE),
        ("$a = 6", IMPOSSIBLE),
        ("$a <> 2", POSSIBLE),
        ("$a <> 6", SURE),
        ("$three = 3", SURE),
        ("$three <> 3", IMPOSSIBLE),
        ("3 = $three", SURE),
        ("1 < $a", SURE),
        ("6 <= $a", IMPOSSIBLE),
        ("1 = 1", SURE),
        ("1 = 2", IMPOSSIBLE),
    ],
)
def test_a_comparison_with_an_interval(text: str, expected: tuple[bool, bool]) -> None:
    assert _judged(text, SMALL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$big >= 40", SURE),
        ("$big >= 41", POSSIBLE),
        ("$big <= 47", SURE),
        ("$big = 40", POSSIBLE),
        ("$big > 47", IMPOSSIBLE),
    ],
)
def test_a_bucket_may_contain_any_of_its_numbers(text: str, expected: tuple[bool, bool]) -> None:
    assert _judged(text, SMALL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a < $big", SURE),
        ("$big <= $a", IMPOSSIBLE),
        ("$a < $b", POSSIBLE),
        ("$a = $b", POSSIBLE),
        ("$a <= $b", POSSIBLE),
        ("$big <> $a", SURE),
        ("$three = $three", SURE),
        ("$big = $big", POSSIBLE),  # each side is looked at by itself: true for all, and not seen to be
    ],
)
def test_a_comparison_of_two_intervals(text: str, expected: tuple[bool, bool]) -> None:
    assert _judged(text, SMALL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('$cpu eq "sparc"', SURE),
        ('$cpu ne "sparc"', IMPOSSIBLE),
        ('$cpu ls "t"', SURE),
        ('$cpu ge "t"', IMPOSSIBLE),
        ('$os eq "SunOS"', POSSIBLE),
        ('not $os eq "SunOS"', POSSIBLE),
        ("$os eq $cpu", POSSIBLE),
        ("$os = 1", POSSIBLE),  # one machine may have said a number
    ],
)
def test_a_comparison_with_a_string(text: str, expected: tuple[bool, bool]) -> None:
    assert _judged(text, SMALL) == expected


@pytest.mark.parametrize("term", ["$half = 1", "$half = 9", "$gone = 1", '$gone eq "x"', "not $gone = 1"])
def test_a_missing_or_withheld_attribute_could_have_any_value_and_is_never_certain(term: str) -> None:
    assert _judged(term, SMALL) == POSSIBLE
    assert _judged(f"{term} or 1 = 1", SMALL) == POSSIBLE
    assert _judged(f"{term} and 1 = 2", SMALL) == IMPOSSIBLE


@pytest.mark.parametrize("term", ["$cpu = 1", '$a eq "x"'])
def test_a_value_of_the_wrong_type_makes_all_of_it_impossible(term: str) -> None:
    assert _judged(term, SMALL) == IMPOSSIBLE
    assert _judged(f"not {term}", SMALL) == IMPOSSIBLE
    assert _judged(f"1 = 1 or {term}", SMALL) == IMPOSSIBLE


@pytest.mark.parametrize("name", ["a", "cpu", "os", "half", "gone"])
def test_a_variable_compared_as_both_types_is_impossible(name: str) -> None:
    assert _judged(f'1 = 1 or ${name} = 1 or ${name} eq "x"', SMALL) == IMPOSSIBLE


SAID = {SURE: "1 = 1", POSSIBLE: "$a = 2", IMPOSSIBLE: "1 = 2"}


@pytest.mark.parametrize(("one", "negated"), [(SURE, IMPOSSIBLE), (POSSIBLE, POSSIBLE), (IMPOSSIBLE, SURE)])
def test_not_swaps_surely_and_could(one: tuple[bool, bool], negated: tuple[bool, bool]) -> None:
    assert _judged(f"not {SAID[one]}", SMALL) == negated


@pytest.mark.parametrize(
    ("one", "other", "conjunction", "disjunction", "exclusion"),
    [
        (SURE, SURE, SURE, SURE, IMPOSSIBLE),
        (SURE, POSSIBLE, POSSIBLE, SURE, POSSIBLE),
        (SURE, IMPOSSIBLE, IMPOSSIBLE, SURE, SURE),
        (POSSIBLE, POSSIBLE, POSSIBLE, POSSIBLE, POSSIBLE),
        (POSSIBLE, IMPOSSIBLE, IMPOSSIBLE, POSSIBLE, POSSIBLE),
        (IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE),
    ],
)
def test_and_or_xor_over_a_class(
    one: tuple[bool, bool],
    other: tuple[bool, bool],
    conjunction: tuple[bool, bool],
    disjunction: tuple[bool, bool],
    exclusion: tuple[bool, bool],
) -> None:
    for left, right in ((SAID[one], SAID[other]), (SAID[other], SAID[one])):
        assert _judged(f"{left} and {right}", SMALL) == conjunction
        assert _judged(f"{left} or {right}", SMALL) == disjunction
        assert _judged(f"{left} xor {right}", SMALL) == exclusion
