"""Limits on the patterns among the outputs of a submit."""

import pytest

from messiahs.daemon.api.submit_body import SubmitBody
from messiahs.daemon.api.submit_checks import checking
from tests.unit.daemon.api.steps import result_of


def _problem_of(body: SubmitBody) -> str:
    return result_of(checking(body))


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        (("out/*.csv", "**/x"), ""),
        (tuple(f"{number}*" for number in range(33)), "33 outputs with *, ? or [, at most 32"),
        (
            (*("a" * 201 + f"/{number:02}*" for number in range(20)), "b" * 17),
            "4100 characters of outputs with *, ? or [ together, at most 4096",
        ),
        (("*/" * 64 + "x",), "parts of"),
        (("../*",), "not a relative path"),
        (("a\udcff",), "names must be UTF-8"),
    ],
)
def test_patterns_are_bounded(outputs: tuple[str, ...], problem: str) -> None:
    found = _problem_of(SubmitBody(key="k", argv=("true",), outputs=outputs))
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize(
    ("outputs", "items", "problem"),
    [
        (("{}",), ("*",), ""),
        (tuple(f"{number}{{}}" for number in range(33)), ("x", "*"), "33 outputs with *, ? or [, at most 32"),
        ((*(f"{number}*" for number in range(32)), "{}"), ("x", "[a]"), "33 outputs with *, ? or [, at most 32"),
        (("{}",), ("a/" * 63 + "*",), ""),
        (("{}",), ("a/" * 64 + "*",), "parts of"),
    ],
)
def test_patterns_of_a_member_are_bounded_as_they_will_be_sent(
    outputs: tuple[str, ...], items: tuple[str, ...], problem: str
) -> None:
    found = _problem_of(SubmitBody(key="k", argv=("true",), outputs=outputs, items=items, members=len(items)))
    assert problem in found
    assert bool(problem) == bool(found)
