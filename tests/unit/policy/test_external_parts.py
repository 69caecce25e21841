"""A third-party part that fails: the safe answer in its place, and the reason."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import Allocation, Randomness
from messiahs.policy.external_parts import Guarded
from tests.contract.part_queries import QUERIES
from tests.unit.language.policy_rig import Draws, candidate, ranking


class Name(str):
    """Equal to a name, and of another type."""

    __slots__ = ()


class Names(tuple[str, ...]):
    """Equal to a tuple, and of another type."""

    __slots__ = ()


class UnreadableError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        """Fail."""
        raise ValueError("no text")


BEFORE: PartState = (("a", 1),)


@dataclass(frozen=True, slots=True)
class Doing:
    """A part that does what a test wants."""

    do: Callable[[Any, Randomness], tuple[Any, Any]]
    initial: PartState = ()

    def decide(self, query: object, state: PartState, randomness: Randomness, /) -> tuple[Any, PartState]:
        """Do it."""
        del state
        return self.do(query, randomness)


def _guarded(kind: PartKind, do: Callable[[Any, Randomness], tuple[Any, Any]]) -> Guarded:
    return Guarded(kind, Doing(do), ())


def _failed(kind: PartKind, do: Callable[[Any, Randomness], tuple[Any, Any]]) -> Failed[Any]:
    answer, after = _guarded(kind, do).decide(QUERIES[kind][-1], BEFORE, Draws(*[*range(9), *[0] * 100]))
    assert isinstance(answer, Failed)
    assert after is BEFORE
    return answer


def _answering(answer: object, state: object = ()) -> Callable[[Any, Randomness], tuple[Any, Any]]:
    return lambda _query, _randomness: (answer, state)


@pytest.mark.parametrize(
    ("kind", "answer", "why"),
    [
        (PartKind.UPDATE, 1, "1 is neither True nor False; the change waits for the period"),
        (PartKind.SOURCES, ("a", "x"), "'x' is not in the query; most_waiting() decides"),
        (PartKind.SOURCES, ["a"], "['a'] is not a tuple; most_waiting() decides"),
        (PartKind.SOURCES, ("a", "a"), "something occurs twice in its answer; most_waiting() decides"),
        (PartKind.SELECTION, (1,), "1 are missing in its answer; tasks stay in the order in which they came"),
        (PartKind.SELECTION, (0, True), "True is not in the query; tasks stay in the order in which they came"),
        (PartKind.MIGRATION, (3,), "3 is not in the query; no running task moves"),
        (PartKind.MIGRATION, None, "None is not a tuple; no running task moves"),
        (PartKind.MIGRATION, (0.0,), "0.0 is not in the query; no running task moves"),
        (PartKind.SOURCES, (Name("a"),), "'a' is not in the query; most_waiting() decides"),
        (PartKind.SOURCES, Names(("a",)), "('a',) is not a tuple; most_waiting() decides"),
        (PartKind.ALLOCATION, 2, "2 is not an Allocation; nothing is granted"),
        (PartKind.ALLOCATION, Allocation(slots=0, places=1), "0 slots cannot be given; nothing is granted"),
        (
            PartKind.ALLOCATION,
            Allocation(slots=1, places=-1),
            "-1 of 100 places cannot be granted; nothing is granted",
        ),
        (
            PartKind.ALLOCATION,
            Allocation(slots=1, places=101),
            "101 of 100 places cannot be granted; nothing is granted",
        ),
    ],
)
def test_an_invalid_answer_is_reported_and_replaced_by_a_safe_one(kind: PartKind, answer: object, why: str) -> None:
    assert _failed(kind, _answering(answer)).why == why


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        (PartKind.UPDATE, False),
        (PartKind.SOURCES, ("a", "b", "c")),
        (PartKind.SELECTION, (0, 1)),
        (PartKind.MIGRATION, ()),
        (PartKind.ALLOCATION, Allocation(slots=4, places=0)),
    ],
)
@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), RecursionError()])
def test_any_exception_of_a_part_is_handled_alike(kind: PartKind, instead: object, error: BaseException) -> None:
    def fail(_query: object, _randomness: Randomness) -> tuple[Any, Any]:
        raise error

    failed = _failed(kind, fail)
    assert failed.instead == instead
    assert failed.why.startswith(type(error).__name__)


@pytest.mark.parametrize(
    "state",
    [None, [("a", 1)], ("a",), ((1.5,),), ((True,),), ((2**63,),), (("x" * 65,),), ((0,),) * 5000],
)
def test_a_state_that_no_trace_could_hold_is_a_failure(state: object) -> None:
    assert "its state" in _failed(PartKind.MIGRATION, _answering((), state)).why


def test_a_part_does_not_receive_candidates_that_could_not_hold_the_task() -> None:
    seen: list[object] = []

    def see(query: Any, _randomness: Randomness) -> tuple[Any, Any]:  # noqa: ANN401 - a RankQuery
        seen.extend(each.system for each in query.candidates)
        return ("full",), ()

    query = ranking(candidate("full", {"free_slots": 0}), candidate("free"))
    answer, _ = _guarded(PartKind.LOCATION, see).decide(query, (), Draws(0))
    assert seen == ["free"]
    assert answer == Failed(instead=("free",), why="'full' is not in the query; weighted_free_slots() decides")


@pytest.mark.parametrize("count", [0, -1, 1025, "8", True])
def test_an_invalid_draw_is_a_failure_of_the_part(count: Any) -> None:  # noqa: ANN401 - as a stranger may
    failed = _failed(PartKind.MIGRATION, lambda _query, randomness: (randomness.bits(count), ()))
    assert "random bits" in failed.why


def test_an_exception_of_the_random_source_is_not_a_failure_of_the_part() -> None:
    class Broken:
        """Cannot draw."""

        def bits(self, count: int, /) -> int:
            """Fail."""
            raise ZeroDivisionError(count)

    part = _guarded(PartKind.MIGRATION, lambda _query, randomness: (randomness.bits(3), ()))
    with pytest.raises(ZeroDivisionError):
        part.decide(QUERIES[PartKind.MIGRATION][0], (), Broken())


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (asyncio.CancelledError(), "CancelledError: "),
        (GeneratorExit(), "GeneratorExit: "),
        (SystemExit(0), "SystemExit: 0"),
        (UnreadableError(), "UnreadableError: its text cannot be read"),
        (ValueError("a\nb\x1b\ud800"), r"ValueError: a\nb\x1b\udc00"),
        (ValueError("x" * 10_000), f"ValueError: {'x' * 200}"),
    ],
)
def test_whatever_a_part_raises_is_its_failure_in_one_short_line(error: BaseException, why: str) -> None:
    def fail(_query: object, _randomness: Randomness) -> tuple[Any, Any]:
        raise error

    assert _failed(PartKind.MIGRATION, fail).why == f"{why}; no running task moves".replace(r"\udc00", r"\ud800")


def test_an_interrupt_by_the_user_is_passed_on() -> None:
    def interrupt(_query: object, _randomness: Randomness) -> tuple[Any, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _failed(PartKind.MIGRATION, interrupt)


def test_a_part_that_changes_its_query_changes_a_copy() -> None:
    def change(query: Any, _randomness: Randomness) -> tuple[Any, Any]:  # noqa: ANN401 - an AllocationQuery
        object.__setattr__(query, "wanted", 10**9)
        return Allocation(slots=1, places=10**9), ()

    assert _failed(PartKind.ALLOCATION, change).instead == Allocation(slots=4, places=0)


def test_a_part_that_hides_a_failure_of_the_random_source_does_not_hide_it_from_the_module() -> None:
    class Broken:
        """Cannot draw."""

        def bits(self, count: int, /) -> int:
            """Fail."""
            raise ZeroDivisionError(count)

    def hide(_query: object, randomness: Randomness) -> tuple[Any, Any]:
        with suppress(ZeroDivisionError):
            randomness.bits(3)
        return (), ()

    with pytest.raises(ZeroDivisionError):
        _guarded(PartKind.MIGRATION, hide).decide(QUERIES[PartKind.MIGRATION][0], (), Broken())


@pytest.mark.parametrize(
    ("kind", "facts_of"),
    [
        (PartKind.LOCATION, lambda query: query.module),
        (PartKind.SELECTION, lambda query: query.tasks[0]),
        (PartKind.SELECTION, lambda query: query.here),
        (PartKind.MIGRATION, lambda query: query.tasks[0].task),
        (PartKind.ALLOCATION, lambda query: query.here),
    ],
)
def test_a_part_cannot_change_the_facts_in_its_query(kind: PartKind, facts_of: Callable[[Any], Any]) -> None:
    def change(query: Any, _randomness: Randomness) -> tuple[Any, Any]:  # noqa: ANN401 - by kind
        facts_of(query)["cpus"] = 100
        raise AssertionError("the facts have changed")

    before = repr(QUERIES[kind][-1])
    assert _failed(kind, change).why.startswith("TypeError: ")
    assert repr(QUERIES[kind][-1]) == before


@pytest.mark.parametrize("kind", QUERIES)
def test_a_part_gets_queries_that_are_equal_to_those_of_the_module(kind: PartKind) -> None:
    seen: list[object] = []

    def see(query: object, _randomness: Randomness) -> tuple[Any, Any]:
        seen.append(query)
        raise KeyError

    for query in QUERIES[kind]:
        _guarded(kind, see).decide(query, (), Draws(*range(9)))
    if kind is not PartKind.LOCATION:
        assert seen == list(QUERIES[kind])


def test_a_part_may_draw_only_so_much_for_one_decision() -> None:
    def draw(count: int) -> Callable[[object, Randomness], tuple[Any, Any]]:
        def decide(_query: object, randomness: Randomness) -> tuple[Any, Any]:
            for _ in range(count):
                randomness.bits(1_024)
            return (), ()

        return decide

    part, draws = PartKind.MIGRATION, Draws(*[0] * 100)
    assert _guarded(part, draw(64)).decide(QUERIES[part][0], (), draws) == ((), ())
    failed = _failed(part, draw(65))
    assert failed.why == (
        "ValueError: more than 65536 random bits were requested for one decision; no running task moves"
    )
