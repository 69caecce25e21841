"""Limits of a predicate, and hostile texts."""

import inspect
import sys

import pytest

from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import MachineClass, Vector, vector_of
from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate, predicate_parser
from tests.hostile.predicates import costly_texts, refused_texts


def _nested(depth: int) -> str:
    return "(" * depth + "$a = 1" + ")" * depth


def _padded(text: str, size: int) -> str:
    return text + " " * (size - len(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        _nested(64),
        "not " * 64 + "1 = 1",
        "not (" * 32 + "1 = 1" + ")" * 32,
        " or ".join(["1=1"] * 256),
        " and ".join(["not not 1=1"] * 200),
        " and ".join(["(not 1=1)"] * 200),
        " and ".join([_nested(10)] * 100),
        " and ".join([f"not {_nested(63)}"] * 2),
        _padded('$a eq "é"', 4096),
    ],
)
def test_texts_just_inside_the_limits(text: str) -> None:
    assert parse_predicate(text).text == text


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (_nested(65), 65, "nested deeper than 64"),
        ("not " * 65 + "1 = 1", 257, "nested deeper than 64"),
        ("not (" * 32 + "not 1 = 1" + ")" * 32, 161, "nested deeper than 64"),
        (f"not not ({_nested(61)}) and not {_nested(64)}", 147 + 64, "nested deeper than 64"),
        (" or ".join(["1=1"] * 257), 256 * 7 + 2, "more than 256 comparisons"),
        (_padded('$a eq "é"', 4097), 1, "longer than 4096 bytes"),
        ("é" * 2049, 1, "longer than 4096 bytes"),
    ],
)
def test_texts_just_outside_the_limits(text: str, column: int, message: str) -> None:
    with pytest.raises(PredicateError, match=message) as raised:
        parse_predicate(text)
    assert raised.value.column == column


@pytest.mark.parametrize("name", refused_texts())
def test_a_hostile_text_is_refused_with_a_short_message(name: str) -> None:
    answer = predicate_parser(refused_texts()[name])
    assert isinstance(answer, BadPredicate)
    assert len(answer.text) < 250
    assert len(answer.text.splitlines()) == 1


@pytest.mark.parametrize("name", costly_texts())
def test_the_most_costly_predicates_are_evaluated_alike_by_all_evaluators(name: str) -> None:
    predicate = parse_predicate(costly_texts()[name])
    for load in (999, 1001, 1300, 9500):
        description = {"load": load, "os": "Linux", "speed": 1000}
        walked, generated = (predicate.holds(description) for _ in range(2))
        surely, could = predicate.over(IndexedVector(vector_of(SDV(sorted_pairs(description)))))
        assert walked is generated
        assert surely <= walked <= could


def test_a_text_that_is_too_long_is_not_kept() -> None:
    with pytest.raises(PredicateError) as raised:
        parse_predicate("x" * 1_000_000)
    assert len(raised.value.source) <= 4096


def test_the_deepest_predicate_takes_only_half_of_the_stack() -> None:
    deepest = "1=2 or 1=2 xor 1=1 and(" * 64 + "$a=1" + ")" * 64
    used = len(inspect.stack())
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(used + 500)
    try:
        predicate = parse_predicate(deepest)
        walked, generated = (predicate.holds({"a": 1}) for _ in range(2))
        _, could = predicate.over(IndexedVector(Vector((MachineClass(count=1, attributes=()),))))
        same = predicate == parse_predicate(deepest)
    finally:
        sys.setrecursionlimit(limit)
    assert (walked, generated, could, same) == (True, True, 1, True)
