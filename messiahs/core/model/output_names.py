"""Names of the outputs of an attempt (MESSIAHS 5.3.3). User commands load this module, so it imports nothing heavy.

A declared name with `*`, `?` or `[` is a pattern for paths in the working directory, as in a shell: `*` and `?` match
no `/`, `[ab]`, `[a-z]` and `[!a]` match one character, and `**` matches any number of folders, also none. A part that
begins with a dot is matched only by a part of the pattern that begins with a dot.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

from messiahs.core.model.texts import printable

LOGS: Final = ("stdout", "stderr")
"""Outputs that every attempt has."""
MISSING: Final = "missing at the end: "
"""Begins every text that names missing outputs."""
_SHOWN: Final = 5
"""Missing outputs that are named."""
DECLARED_PREFIX: Final = "work/"
"""Precedes the path of a declared output in the task's working directory."""
DEPTH_LIMIT: Final = 64
"""Maximum number of parts of a pattern, and of the paths that patterns match."""
PATTERN_LIMIT: Final = 32
"""Maximum number of patterns of a task: each path is compared with each of them."""
_ANY_FOLDERS: Final = "**"
_SPECIAL: Final = re.compile(r"[*?\[]")
_KEPT_EXPRESSIONS: Final = 1024

States = frozenset[int]
"""The parts of a pattern that can match the next part of a path; the number of all parts if the pattern has matched."""


def is_pattern(name: str) -> bool:
    """Return whether a declared name is a pattern."""
    return _SPECIAL.search(name) is not None


class Pattern:
    """A pattern for paths, compared part by part in time linear in both lengths."""

    def __init__(self, text: str) -> None:
        self._parts = tuple(text.split("/"))
        self.start = self._with_skipped({0})
        """What can match the first part of a path."""

    def step(self, states: States, part: str) -> States:
        """Return what can match after one more part of a path; empty if nothing that begins like this matches."""
        found: set[int] = set()
        for state in states:
            if state == len(self._parts):
                continue
            if self._parts[state] != _ANY_FOLDERS:
                if _matches(self._parts[state], part):
                    found.add(state + 1)
            elif not part.startswith("."):
                found.add(state)
        return self._with_skipped(found)

    def has_matched(self, states: States) -> bool:
        """Return whether the parts up to here match the whole pattern."""
        return len(self._parts) in states

    def only_name(self, states: States) -> str | None:
        """Return the one name that can match the next part of a path; None if several can."""
        (state, *others) = states
        is_plain = not others and state < len(self._parts) and not is_pattern(self._parts[state])
        return self._parts[state] if is_plain else None

    def covers(self, path: str) -> bool:
        """Return whether a path matches, or lies below a folder that matches."""
        states = self.start
        for part in path.split("/")[:DEPTH_LIMIT]:
            states = self.step(states, part)
            if not states or self.has_matched(states):
                break
        return self.has_matched(states)

    def _with_skipped(self, states: set[int]) -> States:
        for state in sorted(states):
            following = state
            while following < len(self._parts) and self._parts[following] == _ANY_FOLDERS:
                following += 1
                states.add(following)
        return frozenset(states)


class Declared:
    """The outputs that a task declared: paths of files and folders, and patterns."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names if isinstance(names, frozenset) else frozenset(names)
        # A path may have thousands of folders: prefixes are compared only at the lengths of declared names.
        self._lengths = frozenset(map(len, self._names))
        self._patterns = {name: Pattern(name) for name in sorted(self._names) if is_pattern(name)}

    def covers(self, path: str) -> bool:
        """Return whether a path in the working directory was declared, or lies below a declared folder."""
        parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            return False
        is_named = any(name in self._names for name in self._above(path))
        return is_named or any(pattern.covers(path) for pattern in self._patterns.values())

    def missing(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the declared names to which none of some covered paths belongs, in order of name."""
        found = {name for path in paths for name in self._above(path)}
        left = (name for name in sorted(self._names) if name not in found)
        return tuple(
            name for name in left if name not in self._patterns or not any(map(self._patterns[name].covers, paths))
        )

    def _above(self, path: str) -> Iterator[str]:
        """Yield a path and the folders above it, as far as names of that length are declared."""
        ends = (*(end for end, letter in enumerate(path) if letter == "/"), len(path))
        return (path[:end] for end in ends if end in self._lengths)


def missing_text(names: Sequence[str]) -> str:
    """Return for people which declared names are missing, the first ones by name."""
    return f"{MISSING}{listed(names[:_SHOWN], len(names))}"


def listed(first: Collection[str], count: int) -> str:
    """Return the first of several names for people, and how many more there are."""
    shown = ", ".join(map(printable, first))
    return shown if count == len(first) else f"{shown} and {count - len(first)} more"


def _matches(pattern: str, part: str) -> bool:
    is_hidden = part.startswith(".") and not pattern.startswith(".")
    return not is_hidden and _expression(pattern).match(part) is not None


@lru_cache(maxsize=_KEPT_EXPRESSIONS)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
