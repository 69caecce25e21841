"""What a search for the place of a local task has asked, in which order and why, and what was answered.

It is for local users: it has the values by which the policy of this module ordered its neighbors. What others answered
is in it as they sent it, cut to a bounded size, since it is stored with each task.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from messiahs.core.interface.messages import DenyCode, Reason
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant

GRANTED: Final = "granted"
ASKED: Final = "asked"
NOT_ASKED: Final = "not_asked"
LISTED_LIMIT: Final = 16
"""Most systems of one search that a record has, in its order; the others are counted."""
_REASONS_LIMIT: Final = 8
"""Most reasons of one system, with those of the modules behind it."""
_TEXT_LIMIT: Final = 200
"""Most characters of each text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSystem:
    """One system in the order of a search: `why` it has this place there, and what it answered.

    It was not asked (any more) without `is_asked`; then `code` may be why. It may grant `places` and deny the rest.
    """

    system: SystemId
    why: str
    is_asked: bool = False
    code: DenyCode | None = None
    places: int = 0
    reasons: tuple[Reason, ...] = ()

    @property
    def answer(self) -> str:
        """`granted`, the code of its denial, `asked` while it has not answered, or `not_asked`."""
        if self.places:
            return GRANTED
        return self.code.value if self.code is not None else ASKED if self.is_asked else NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A neighbor that was not to be asked, since no machine behind it could take the task by its view."""

    system: SystemId
    code: DenyCode


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """One search, which began at `at`; `unlisted` counts further systems in its order, and further ones left out."""

    at: Instant
    order: tuple[AskedSystem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    unlisted: int = 0

    def with_first(self, asked: AskedSystem) -> "SearchRecord":
        """Return the record with a system before all others."""
        return replace(self, order=(asked, *self.order))

    def asking(self, system: SystemId) -> "SearchRecord":
        """Return the record once a system is asked; one that is not listed changes nothing, here and below."""
        return self._with(system, lambda each: replace(each, is_asked=True))

    def granted(self, system: SystemId, *, places: int) -> "SearchRecord":
        """Return the record once a system has granted places, or further ones."""
        return self._with(system, lambda each: replace(each, is_asked=True, places=each.places + places))

    def denied(self, system: SystemId, reasons: tuple[Reason, ...]) -> "SearchRecord":
        """Return the record once a system has denied, or was passed over, for these reasons."""
        code = reasons[0].code if reasons else DenyCode.NO_CAPACITY
        return self._with(system, lambda each: replace(each, code=code, reasons=bounded(reasons)))

    def _with(self, system: SystemId, changed: Callable[[AskedSystem], AskedSystem]) -> "SearchRecord":
        return replace(self, order=tuple(changed(each) if each.system == system else each for each in self.order))


def bounded(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Return the first of some reasons, those of the modules behind them included, with texts of bounded length."""
    left = _REASONS_LIMIT

    def cut(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        nonlocal left
        kept: list[Reason] = []
        for reason in reasons:
            if not left:
                break
            left -= 1
            kept.append(
                replace(
                    reason, text=_cut(reason.text), rule=_cut(reason.rule), why=_cut(reason.why), hops=cut(reason.hops)
                )
            )
        return tuple(kept)

    return cut(reasons)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"
