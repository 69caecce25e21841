"""Patterns for paths, all compared with a path at once, in the same work for each character whatever the patterns are.

Each token of each pattern is one bit of a number, and a set bit means that this token can match the next character. A
character then takes one shift and three bitwise operations, and nothing is ever tried again, as regular expressions do.

`*` lets the token after it, or the end of its part, wait for any number of characters. `**` has two bits: one for the
beginning of a folder that it skips, and one for the rest of that folder's name.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

_ANY_FOLDERS: Final = "**"
_SPECIAL: Final = frozenset("*?[")
_END: Final = 0x110000
"""Follows the last character."""
_KEPT_CHARACTERS: Final = 1024
_KEPT_PATTERNS: Final = 16

States = int
"""A set of tokens that can match the next character, of all patterns together; no bit if no pattern can match."""


class PathPatterns:
    """The patterns of one task. The number of a pattern is its place."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._characters = _Characters()
        self._plain: dict[int, str] = {}
        """Parts without special characters, by the numbers of their first bits."""
        self._whole: list[tuple[int, int]] = []
        """The end of each pattern, and all its bits."""
        self._waiting = self._slashes = self._dots = self._skip_begins = self._skipping = self._ends = 0
        self._size = 0
        self.start: States = 0
        """What can match the first part of a path."""
        for pattern in patterns:
            first = self._size
            self.start |= 1 << first
            self._add(_parts_of(pattern))
            end = 1 << self._size - 1
            self._ends |= end
            self._whole.append((end, (1 << self._size) - (1 << first)))
        self._characters.close()
        self.start |= (self.start & self._skip_begins) << 2

    def step(self, states: States, part: str) -> States:
        """Return what can follow after one more part of a path; `states` are at its beginning."""
        if part.startswith("."):
            states &= self._dots
        waiting, characters = self._waiting, self._characters
        for character in part:
            if not states:
                break
            states = (states & characters[character]) << 1 | states & waiting
        return states

    def below(self, states: States) -> States:
        """Return what can match the next part of a path, after the one that led to `states`."""
        following = (states & self._slashes) << 1 | (states & self._skipping) >> 1
        return following | (following & self._skip_begins) << 2

    def matched(self, states: States) -> States:
        """Return the ends of patterns that the parts up to here match as a whole; no bit if there is none."""
        return states & self._ends

    def numbers(self, ends: States) -> frozenset[int]:
        """Return the numbers of the patterns with these ends."""
        return frozenset(number for number, (end, _) in enumerate(self._whole) if end & ends)

    def without(self, states: States, ends: States) -> States:
        """Remove the patterns with these ends."""
        for end, whole in self._whole:
            if end & ends:
                states &= ~whole
        return states

    def only_names(self, states: States) -> list[str] | None:
        """Return the only names that can match the next part of a path; None if they are unknown."""
        found: set[str] = set()
        while states:
            first = states & -states
            name = self._plain.get(first.bit_length() - 1)
            if name is None:
                return None
            found.add(name)
            states ^= first
        return sorted(found)

    def covering(self, parts: Sequence[str]) -> States:
        """Return the ends of all patterns that match a path or a folder above it."""
        found, states = 0, self.start
        for part in parts:
            states = self.step(states, part)
            found |= states & self._ends
            states = self.below(states)
            if not states:
                break
        return found

    def _add(self, parts: list[str]) -> None:
        for place, part in enumerate(parts):
            if part == _ANY_FOLDERS:
                self._skip_begins |= 1 << self._size
                self._skipping |= 2 << self._size
                self._waiting |= 2 << self._size
                self._slashes |= 2 << self._size
                self._characters.add_range(0, _END, bit=1 << self._size)
                self._size += 2
                continue
            if part.startswith("."):
                self._dots |= 1 << self._size
            if _SPECIAL.isdisjoint(part):
                self._plain[self._size] = part
            for token in _tokens_of(part):
                self._add_token(token, 1 << self._size)
                self._size += token is not None
            if place < len(parts) - 1:
                self._slashes |= 1 << self._size
            self._size += 1

    def _add_token(self, token: "_Token", bit: int) -> None:
        if token is None:
            self._waiting |= bit
        elif isinstance(token, str):
            self._characters.add(token, bit)
        else:
            for first, end in token:
                self._characters.add_range(first, end, bit=bit)


@lru_cache(maxsize=_KEPT_PATTERNS)
def compiled(patterns: tuple[str, ...]) -> PathPatterns:
    """Return patterns ready for comparisons; the last ones are kept."""
    return PathPatterns(patterns)


class _Characters(dict[str, int]):
    """The tokens that match each character; those of the characters that were needed last are kept (mutable)."""

    def __init__(self) -> None:
        super().__init__()
        self._single: dict[str, int] = {}
        self._changes: dict[int, int] = {}
        """Tokens that begin to match at a character, or no longer match there."""
        self._firsts: list[int] = []
        self._from: list[int] = []
        """The tokens that match from each of `_firsts` on."""

    def add(self, character: str, bit: int) -> None:
        """Let a token match one character."""
        self._single[character] = self._single.get(character, 0) | bit

    def add_range(self, first: int, end: int, *, bit: int) -> None:
        """Let a token match the characters from the first one until before `end`."""
        for place in (first, end):
            self._changes[place] = self._changes.get(place, 0) ^ bit

    def close(self) -> None:
        """Be ready for questions."""
        matching = 0
        self._firsts = sorted(self._changes)
        for first in self._firsts:
            matching ^= self._changes[first]
            self._from.append(matching)
        self._changes.clear()

    def __missing__(self, character: str) -> int:
        place = bisect_right(self._firsts, ord(character))
        tokens = self._single.get(character, 0) | (self._from[place - 1] if place else 0)
        if len(self) >= _KEPT_CHARACTERS:
            self.clear()
        self[character] = tokens
        return tokens


_Token = str | list[tuple[int, int]] | None
"""A character, or ranges of characters that do not overlap, each with its end; None for `*`."""


def _parts_of(pattern: str) -> list[str]:
    """Return the parts of a pattern: `**` neither twice in a row nor at the end.

    What matches stands for everything below, so `a/**` and `a` match the same, and so do `**` and `*`.
    """
    parts: list[str] = []
    for part, alike in groupby(pattern.split("/")):
        parts += [part] if part == _ANY_FOLDERS else alike
    if parts[-1] == _ANY_FOLDERS:
        parts.pop()
    return parts or ["*"]


def _tokens_of(part: str) -> Iterator[_Token]:
    """Yield the tokens of a part, which mean what they do in a shell."""
    place = 0
    while place < len(part):
        letter = part[place]
        place += 1
        if letter == "*":
            yield None
        elif letter == "?":
            yield [(0, _END)]
        elif letter == "[" and (end := _end_of_set(part, place)):
            yield _ranges_of(part[place:end])
            place = end + 1
        else:
            yield letter


def _end_of_set(part: str, place: int) -> int:
    """Return where the bracket is that closes the set of characters that begins here; 0 if there is none."""
    place += part[place : place + 1] == "!"
    return max(0, part.find("]", place + 1))


def _ranges_of(text: str) -> list[tuple[int, int]]:
    """Return what a set of characters matches, in order and without overlaps."""
    is_inverted = text.startswith("!")
    found: list[tuple[int, int]] = []
    place = int(is_inverted)
    while place < len(text):
        is_range = text[place + 1 : place + 2] == "-" and place + 2 < len(text)
        first, last = text[place], text[place + 2 if is_range else place]
        if first <= last:
            found.append((ord(first), ord(last) + 1))
        place += 3 if is_range else 1
    ranges = _joined(found)
    if not is_inverted:
        return ranges
    edges = [0, *(edge for one in ranges for edge in one), _END]
    return [(first, end) for first, end in zip(edges[::2], edges[1::2], strict=True) if first < end]


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    return joined
