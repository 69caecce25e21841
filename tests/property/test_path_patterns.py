"""A law of patterns: compared all at once, each part by part in one pass, they match what `fnmatch` matches."""

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.path_patterns import PathPatterns

# No `-`: in a range that ends before it begins, `fnmatch` takes what follows for a `!`.
_PARTS = st.text("ab.*?[]!z", min_size=1, max_size=8)
_PATTERNS = st.lists(st.one_of(_PARTS, st.just("**")), min_size=1, max_size=5)
_PATHS = st.lists(st.text("ab.!z]", min_size=1, max_size=5), min_size=1, max_size=5)


def matches(pattern: list[str], path: list[str]) -> bool:
    """Return whether a pattern matches a path or a folder above it, tried in every way."""
    if not pattern:
        return True
    if pattern[0] == "**":
        # A name that begins with a dot is not skipped.
        skips = bool(path) and not path[0].startswith(".")
        return matches(pattern[1:], path) or (skips and matches(pattern, path[1:]))
    if not path or (path[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatchcase(path[0], pattern[0]) and matches(pattern[1:], path[1:])


def covers(pattern: list[str], path: list[str]) -> bool:
    """Nothing but `**` stands for the working directory itself, which is no output."""
    return matches([*pattern[:-1], "*"] if set(pattern) == {"**"} else pattern, path)


@given(st.lists(_PATTERNS, max_size=4), st.lists(_PATHS, max_size=6))
def test_patterns_match_as_if_each_part_was_compared_alone(patterns: list[list[str]], paths: list[list[str]]) -> None:
    together = PathPatterns(["/".join(pattern) for pattern in patterns])
    for path in paths:
        expected = {number for number, pattern in enumerate(patterns) if covers(pattern, path)}
        assert together.numbers(together.covering(path)) == expected


@given(st.lists(_PATTERNS, max_size=4), _PATHS)
def test_the_only_names_that_can_follow_are_the_only_ones(patterns: list[list[str]], path: list[str]) -> None:
    together = PathPatterns(["/".join(pattern) for pattern in patterns])
    states = together.start
    for part in path:
        names = together.only_names(states)
        following = together.step(states, part)
        usable = together.matched(following) | together.below(following)
        assert names is None or part in names or not usable
        states = together.below(following)


@given(text=st.text("ab-z", min_size=1, max_size=6), is_inverted=st.booleans(), character=st.sampled_from("ab-yz"))
def test_a_set_has_its_characters_and_ranges(text: str, *, is_inverted: bool, character: str) -> None:
    members: set[str] = set()
    rest = text
    while rest:
        if len(rest) > 2 and rest[1] == "-":
            members |= {chr(code) for code in range(ord(rest[0]), ord(rest[2]) + 1)}
            rest = rest[3:]
        else:
            members.add(rest[0])
            rest = rest[1:]
    patterns = PathPatterns([f"[{'!' if is_inverted else ''}{text}]"])
    assert bool(patterns.covering([character])) is ((character in members) != is_inverted)
