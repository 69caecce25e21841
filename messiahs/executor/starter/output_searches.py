"""The searches for the outputs of attempts that have ended, a few milliseconds at a time.

The starter has one thread, and a task chooses what its search has to look at. So each step of the starter gives a
little time to searches that begin, in which nearly all of them end, and as much to one of those that take longer.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from messiahs.executor.attempts import Held
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.layout import ATTEMPTS, WORK
from messiahs.executor.starter.output_search import Found, OutputSearch

_PIECE_NS: Final = 2_000_000
_ENTRIES: Final = 8
"""Entries between two looks at the clock."""
_LONG: Final = 4
"""Long searches that go on in turns; each has up to 130 files open."""


@dataclass(slots=True)
class _Searched:
    """An attempt whose outputs are sought, and the text that precedes problems with them (mutable)."""

    held: Held
    text: str
    search: OutputSearch | None = None
    """None before it begins."""


class OutputSearches:
    """Searches in the folders of attempts below `root` (mutable)."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._new: deque[_Searched] = deque()
        self._long: deque[_Searched] = deque()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._new or self._long)

    def add(self, held: Held, text: str) -> None:
        """Search for the outputs of an attempt that has none of its processes any more."""
        self._new.append(_Searched(held, text))

    def give_up(self, held: Held) -> bool:
        """End the search of an attempt; False if there is none."""
        for searches in (self._new, self._long):
            for one in searches:
                if one.held is held:
                    if one.search is not None:
                        one.search.close()
                    searches.remove(one)
                    return True
        return False

    def ended(self) -> Iterator[tuple[Held, str, Found]]:
        """Go on for a few milliseconds; yield the attempts whose searches have ended, each with what was found."""
        until = boottime_ns() + _PIECE_NS
        # Those that begin anew when there is room for a long one are not tried twice.
        for _ in range(len(self._new)):
            one = self._new.popleft()
            if (found := self._go_on(one, until)) is not None:
                yield one.held, one.text, found
            elif len(self._long) < _LONG:
                self._long.append(one)
            else:
                assert one.search is not None
                one.search.close()
                one.search = None
                self._new.append(one)
            if boottime_ns() >= until:
                break
        if self._long:
            one = self._long.popleft()
            if (found := self._go_on(one, boottime_ns() + _PIECE_NS)) is not None:
                yield one.held, one.text, found
            else:
                self._long.append(one)

    def _go_on(self, one: _Searched, until: int) -> Found | None:
        """Return what was found if the search ends before an instant, or at its first entries."""
        held = one.held
        assert held.start is not None
        if one.search is None:
            work = f"{self._root}/{ATTEMPTS}/{held.folder}/{WORK}"
            one.search = OutputSearch(work, held.start.outputs, uid=held.uid)
        while not one.search.go_on(_ENTRIES):
            if boottime_ns() >= until:
                return None
        return one.search.found
