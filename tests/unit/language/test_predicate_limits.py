"""Limits of a predicate, and texts that were made to hurt."""

import inspect
import sys
import time

import pytest

from messiahs.core.ports import BadPredicate
from messiahs.core.vectors import MachineClass, Vector
from messiahs.errors import PredicateError
from messiahs.language.predicates import parse_predicate, predicate_parser


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


HOSTILE = [
    "(" * 100_000 + "1=1" + ")" * 100_000,
    "not " * 100_000 + "1=1",
    " or ".join(["1=1"] * 100_000),
    f'"{"x" * 1_000_000}" eq "x"',
    f"{'1' * 1_000_000} = 1",
    "\0" * 1_000_000,
    "\N{RIGHT-TO-LEFT OVERRIDE}" * 1_000_000,
    "(" * 4096,
    "not " * 1024,
    "not(" * 1024,
    ")" * 4096,
    "1=1 or " * 585,
    "1" * 4096,
    "-" * 4096,
    "$" * 4096,
    "x" * 4096,
    '"' * 4095,
    '"\\' * 2048,
    "\\" * 4096,
    "\0" * 4096,
    "\ud800" * 1365,
    "\N{RIGHT-TO-LEFT OVERRIDE}" * 1365,
    '""' * 2048,
    "1 " * 2048,
    "$a " * 1365,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:8]))
def test_a_hostile_text_is_refused_in_few_words_and_little_time(text: str) -> None:
    predicate_parser("")  # the grammar is built once per process
    start = time.process_time()
    answer = predicate_parser(text)
    took = time.process_time() - start
    assert isinstance(answer, BadPredicate)
    assert len(answer.text) < 250
    # The promise is 10 ms on an idle machine; a quadratic step would take far more than this.
    assert took < 0.1


def test_a_too_long_text_is_not_kept() -> None:
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
        _, could = predicate.over(Vector((MachineClass(count=1, attributes=()),)))
        same = predicate == parse_predicate(deepest)
    finally:
        sys.setrecursionlimit(limit)
    assert (walked, generated, could, same) == (True, True, 1, True)
