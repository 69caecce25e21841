"""Third-party parts: if one raises or returns an invalid answer, a safe default replaces the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import (
    Allocation,
    AllocationQuery,
    HeardChange,
    MigrationQuery,
    OwnChange,
    Randomness,
    RankQuery,
    RunningQuery,
    SourceQuery,
    TaskOrderQuery,
)
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.descriptions import is_valid_value
from messiahs.core.model.texts import printable
from messiahs.core.task_filter.matching import could_hold
from messiahs.policy.location import MostWaiting, WeightedFreeSlots
from messiahs.policy.parts import Decider

STATE_LIMIT: Final = 4_096
"""Maximum number of rows and values in the state of a third-party part."""
_TEXT_LENGTH: Final = 200
_DRAW_LIMIT_BITS: Final = 1_024
_DECISION_LIMIT_BITS: Final = 65_536
"""Maximum number of random bits for one decision; a trace contains them."""
_QUERIES: Final = (
    OwnChange,
    HeardChange,
    RankQuery,
    SourceQuery,
    TaskOrderQuery,
    MigrationQuery,
    RunningQuery,
    AllocationQuery,
)
"""Queries of parts that policies may name, and those within them."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A third-party part. A failure keeps its state; `SAFE` has the answer that replaces its own.

    A part that orders candidates receives only candidates that could hold the task.
    """

    kind: PartKind
    decider: Decider
    initial: PartState
    """The initial state, as it was when the part was created."""

    def decide(
        self,
        query: Any,  # noqa: ANN401 - by kind
        state: PartState,
        randomness: Randomness,
        /,
    ) -> tuple[Any, PartState]:
        """Return the answer to a query, and the next state."""
        port, safe = _Port(randomness), SAFE[self.kind]
        if isinstance(query, RankQuery):
            able = tuple(each for each in query.candidates if could_hold(query.need, each.view))
            query = replace(query, candidates=able)
        try:
            # The part gets a copy, so that its answer is checked against the query as it was.
            answer, after = self.decider.decide(_sealed(query), state, port)
            why = printable(safe.why_wrong(query, answer) or why_no_state(after))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the module must survive any failure of a part
            answer, after, why = None, state, failure_text(error)
        if port.failure is not None:
            raise port.failure
        if not why:
            return answer, after
        return Failed(instead=safe.instead(query, randomness), why=f"{why}; {safe.consequence}"), state


def _sealed(value: Any) -> Any:  # noqa: ANN401 - a query, or a value in one
    """Return a copy of a query whose facts cannot be changed: the module uses the same ones."""
    if isinstance(value, Mapping):
        return MappingProxyType(value)
    if type(value) is tuple:
        return tuple(map(_sealed, value))
    if isinstance(value, _QUERIES):
        return replace(value, **{each.name: _sealed(getattr(value, each.name)) for each in fields(value)})
    return value


def failure_text(error: BaseException, /) -> str:
    """Return an exception of foreign code as one line of bounded length; it may not even have a readable text."""
    try:
        text = str(error)[:_TEXT_LENGTH]
    except Exception:  # noqa: BLE001 - the text, too, is made by foreign code
        text = "its text cannot be read"
    return printable(f"{type(error).__name__}: {text}")


class _Port:
    """The source of random bits, and its exception, which is not the part's fault (mutable)."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness, self._left_bits = randomness, _DECISION_LIMIT_BITS
        self.failure: Exception | None = None

    def bits(self, count: int, /) -> int:
        """Draw random bits."""
        if type(count) is not int or not 0 < count <= _DRAW_LIMIT_BITS:
            raise ValueError(f"{count!r} random bits were requested; 1 to {_DRAW_LIMIT_BITS} can be drawn")
        if count > self._left_bits:
            raise ValueError(f"more than {_DECISION_LIMIT_BITS} random bits were requested for one decision")
        self._left_bits -= count
        try:
            return self._randomness.bits(count)
        except Exception as error:
            self.failure = error
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Safe:
    """The replacement for a failed part's answer, its description, and a check of answers (empty: valid)."""

    instead: Callable[[Any, Randomness], object]
    consequence: str
    why_wrong: Callable[[Any, object], str]


def why_no_state(state: object, /) -> str:
    """Return why an object is not a state of a part; empty if it is one."""
    if type(state) is not tuple or not all(type(row) is tuple for row in state):
        return "its state is not a tuple of tuples"
    values = [value for row in state for value in row]
    if len(state) + len(values) > STATE_LIMIT:
        return f"its state has more than {STATE_LIMIT} values"
    if not all(type(value) in (int, str) and is_valid_value(value) for value in values):
        return "its state has other values than 64-bit integers and strings of 64 bytes"
    return ""


def _no_bool(query: object, answer: object) -> str:
    del query
    return "" if type(answer) is bool else f"{answer!r:.100} is neither True nor False"


def _no_order(known: tuple[object, ...], answer: object, *, is_whole: bool = False) -> str:
    if type(answer) is not tuple:
        return f"{answer!r:.100} is not a tuple"
    # By type as well: 1.0 equals 1, and neither indexes a list nor can be recorded.
    types = {type(each) for each in known}
    strange = [each for each in answer if type(each) not in types or each not in known]
    if strange:
        return f"{strange[0]!r:.100} is not in the query"
    if len(set(answer)) < len(answer):
        return "something occurs twice in its answer"
    return f"{len(known) - len(answer)} are missing in its answer" if is_whole and len(answer) < len(known) else ""


def _no_candidates(query: RankQuery, answer: object) -> str:
    return _no_order(tuple(each.system for each in query.candidates), answer)


def _no_sources(query: SourceQuery, answer: object) -> str:
    return _no_order(tuple(each.system for each in query.sources), answer)


def _no_task_order(query: TaskOrderQuery, answer: object) -> str:
    return _no_order(tuple(range(len(query.tasks))), answer, is_whole=True)


def _no_tasks(query: MigrationQuery, answer: object) -> str:
    return _no_order(tuple(range(len(query.tasks))), answer)


def _no_allocation(query: AllocationQuery, answer: object) -> str:
    if type(answer) is not Allocation:
        return f"{answer!r:.100} is not an Allocation"
    if type(answer.slots) is not int or not 1 <= answer.slots <= INTEGER_HIGHEST:
        return f"{answer.slots!r:.100} slots cannot be given"
    if type(answer.places) is not int or not 0 <= answer.places <= query.wanted:
        return f"{answer.places!r:.100} of {query.wanted} places cannot be granted"
    return ""


SAFE: Final[Mapping[PartKind, Safe]] = MappingProxyType(
    {
        PartKind.UPDATE: Safe(
            instead=lambda _query, _randomness: False, consequence="the change waits for the period", why_wrong=_no_bool
        ),
        PartKind.LOCATION: Safe(
            instead=lambda query, randomness: WeightedFreeSlots().decide(query, (), randomness)[0],
            consequence="weighted_free_slots() decides",
            why_wrong=_no_candidates,
        ),
        PartKind.SOURCES: Safe(
            instead=lambda query, randomness: MostWaiting().decide(query, (), randomness)[0],
            consequence="most_waiting() decides",
            why_wrong=_no_sources,
        ),
        PartKind.SELECTION: Safe(
            instead=lambda query, _randomness: tuple(range(len(query.tasks))),
            consequence="tasks stay in the order in which they came",
            why_wrong=_no_task_order,
        ),
        PartKind.MIGRATION: Safe(
            instead=lambda _query, _randomness: (), consequence="no running task moves", why_wrong=_no_tasks
        ),
        PartKind.ALLOCATION: Safe(
            instead=lambda query, _randomness: Allocation(slots=query.slots, places=0),
            consequence="nothing is granted",
            why_wrong=_no_allocation,
        ),
    }
)
"""By the kinds of parts that policies may name."""
