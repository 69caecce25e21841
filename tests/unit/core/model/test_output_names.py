"""Declared outputs: names, folders and patterns."""

import pytest

from messiahs.core.model import path_patterns
from messiahs.core.model.output_names import DEPTH_LIMIT, Declared, is_pattern


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("*.csv", "a.csv", True),
        ("*.csv", "A.CSV", False),
        ("*.csv", "out/a.csv", False),
        ("*.csv", "a.csv/below", True),
        ("*.csv", ".a.csv", False),
        (".*", ".a.csv", True),
        ("out/*", "out/a/b", True),
        ("out/*", "out", False),
        ("out/?", "out/ab", False),
        ("out/[ab]", "out/b", True),
        ("out/[!ab]", "out/b", False),
        ("out/[!ab]", "out/.", False),
        ("[", "[", True),
        ("a[1]", "a[1]", True),
        ("a[1]", "a1", True),
        ("**", "a/b/c", True),
        ("**", ".a", False),
        ("**/x", "x", True),
        ("**/x", "a/b/x", True),
        ("**/x", "a/.b/x", False),
        ("a/**/x", "a/x", True),
        ("a/**/b/**/x", "a/1/b/2/3/x", True),
        ("a/**/b/**/x", "a/1/2/3/x", False),
        ("a**b", "axb", True),
        ("*", "../x", False),
        ("**", "a//b", False),
    ],
)
def test_a_pattern_covers_what_it_matches_and_what_is_below(pattern: str, path: str, *, is_covered: bool) -> None:
    assert Declared([pattern]).covers(path) is is_covered


def test_names_without_special_characters_are_no_patterns() -> None:
    assert [name for name in ("a.b", "a{}", "a]", "a*", "a?", "a[b") if is_pattern(name)] == ["a*", "a?", "a[b"]


def test_patterns_with_many_stars_are_compared_in_bounded_time() -> None:
    assert not Declared(["*a" * 100 + "b"]).covers("a" * 255)
    assert not Declared(["/".join(["**", "*"] * 31 + ["b"])]).covers("a/" * 2_000 + "c")


def test_what_a_comparison_costs_does_not_depend_on_which_patterns_nearly_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each character of a path is one step for all patterns, and each path is compared once."""
    looked_at: list[str] = []

    class Noting(path_patterns._Characters):
        def __getitem__(self, character: str) -> int:
            looked_at.append(character)
            return super().__getitem__(character)

    monkeypatch.setattr(path_patterns, "_Characters", Noting)
    path_patterns.compiled.cache_clear()
    hard = "*" + "?" * 20 + "b*"
    declared = Declared([f"{'/'.join([f'**/{hard}'] * 14)}/Q{number}" for number in range(8)])
    path = "/".join(["a" * 200] * 15)
    assert not declared.covers(path)
    assert len(looked_at) == 200 * 15
    assert len(declared.missing([path])) == 8
    assert len(looked_at) == 200 * 15
    path_patterns.compiled.cache_clear()


def test_a_pattern_matches_no_path_that_is_deeper_than_the_limit() -> None:
    assert Declared(["**/x"]).covers("a/" * (DEPTH_LIMIT - 1) + "x")
    assert not Declared(["**/x"]).covers("a/" * DEPTH_LIMIT + "x")
