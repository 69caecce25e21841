"""Names of the outputs of an attempt (MESSIAHS 5.3.3). User commands load this module, so it imports nothing heavy.

A declared name with `*`, `?` or `[` is a pattern for paths in the working directory, as in a shell: `*` and `?` match
no `/`, `[ab]`, `[a-z]` and `[!a]` match one character, and `**` matches any number of folders, also none. A part that
begins with a dot is matched only by a part of the pattern that begins with a dot.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Final

from messiahs.core.model.path_patterns import compiled
from messiahs.core.model.texts import printable

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
LOGS: Final = (STDOUT, STDERR)
"""Outputs that every attempt has, possibly empty."""
MISSING: Final = "missing at the end: "
"""Begins every text that names missing outputs."""
_SHOWN: Final = 5
"""Outputs that a refusal names."""
DECLARED_PREFIX: Final = "work/"
"""Precedes the path of a declared output in the task's working directory."""
DEPTH_LIMIT: Final = 64
"""Maximum number of parts of a pattern, and of the paths that patterns match."""
PATTERN_LIMIT: Final = 32
"""Maximum number of patterns of a task."""
PATTERNS_LIMIT_CHARACTERS: Final = 4096
"""Maximum length of all patterns of a task together: what a comparison costs grows with it."""
NAMES_LIMIT_BYTES: Final = 64 << 10
"""Maximum length of all names and targets of links of an attempt's outputs: every status of the attempt has them."""
_SPECIAL: Final = re.compile(r"[*?\[]")


def is_pattern(name: str) -> bool:
    """Return whether a declared name is a pattern."""
    return _SPECIAL.search(name) is not None


class Declared:
    """The outputs that a task declared: paths of files and folders, and patterns (mutable: paths are compared once)."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names if isinstance(names, frozenset) else frozenset(names)
        # A path may have thousands of folders: prefixes are compared only at the lengths of declared names.
        self._lengths = frozenset(map(len, self._names))
        self._texts = tuple(sorted(filter(is_pattern, self._names)))
        self._patterns = compiled(self._texts)
        self._compared: dict[str, int] = {}
        """The ends of the patterns that cover each path."""

    def covers(self, path: str) -> bool:
        """Return whether a path in the working directory was declared, or lies below a declared folder."""
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            return False
        return any(name in self._names for name in self._above(path)) or self._covering(path) != 0

    def missing(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the declared names to which none of some covered paths belongs, in order of name."""
        found = {name for path in paths for name in self._above(path)}
        ends = reduce(or_, map(self._covering, paths), 0)
        found |= {self._texts[number] for number in self._patterns.numbers(ends)}
        return tuple(name for name in sorted(self._names) if name not in found)

    def _above(self, path: str) -> Iterator[str]:
        """Yield a path and the folders above it, as far as names of that length are declared."""
        ends = (*(end for end, letter in enumerate(path) if letter == "/"), len(path))
        return (path[:end] for end in ends if end in self._lengths)

    def _covering(self, path: str) -> int:
        if not self._texts:
            return 0
        ends = self._compared.get(path)
        if ends is None:
            ends = self._compared[path] = self._patterns.covering(path.split("/")[:DEPTH_LIMIT])
        return ends


def why_never_left(declared: Collection[str], name: str, *, of: str) -> str:
    """Return why a task that declared these outputs leaves no file and no folder of a name; empty if it may."""
    if _may_leave(declared, name):
        return ""
    shown = listed(sorted(declared)[:_SHOWN], len(declared))
    return f"`{printable(name)}` is no output of {of}: it declares {shown or 'none'}"


def _may_leave(declared: Collection[str], name: str) -> bool:
    if Declared(declared).covers(name):
        return True
    depth = name.count("/") + 1
    # It may be a folder above a declared one.
    above = [each.split("/")[:depth] for each in declared if each.count("/") >= depth]
    return any("**" in parts or Declared(["/".join(parts)]).covers(name) for parts in above)


def missing_text(names: Sequence[str]) -> str:
    """Return for people which declared names are missing, the first ones by name."""
    return f"{MISSING}{listed(names[:_SHOWN], len(names))}"


def listed(first: Collection[str], count: int) -> str:
    """Return the first of several names for people, and how many more there are."""
    shown = ", ".join(map(printable, first))
    return shown if count == len(first) else f"{shown} and {count - len(first)} more"
