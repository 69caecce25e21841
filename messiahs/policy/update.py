"""Which changes are sent before the period ends (MESSIAHS 5.3.1)."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from messiahs.core.interface.messages import StatusVector
from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.interface.policies import HeardChange, OwnChange, Randomness, UpdateQuery
from messiahs.core.model.attributes import Unit, Value
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import Place, Vector, places_of
from messiahs.policy.parts import DeclaredPart, NamedPart, Parameter

_WHOLE: Final = 10_000
_COUNT_OF: Final = attrgetter("count")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """Sends a change at once if a key attribute, by which machines are classified and chosen, moves to another bucket.

    With a `share` (in 1/100 %) also if a number of the own machine changes by more; with 0 only keys count. The load
    changes constantly and is no key. For neighbors, the counts of waiting tasks and offers count as well.
    """

    share: int = 0
    initial: PartState = ()

    def decide(self, query: UpdateQuery, state: PartState, randomness: Randomness, /) -> tuple[bool, PartState]:
        """Return whether a change is sent at once."""
        del randomness
        is_sent = _has_view_changed(query) if isinstance(query, HeardChange) else self._has_changed(query)
        return is_sent, state

    def _has_changed(self, query: OwnChange) -> bool:
        if query.before is None or query.after is None:
            return query.before != query.after
        old, new = query.before.description(), query.after.description()
        if old.keys() != new.keys() or any(_is_moved(old[key], new[key]) for key in query.keys if key in new):
            return True
        return bool(self.share) and any(_differs(old[name], value, self.share) for name, value in new.items())


def _has_view_changed(query: HeardChange) -> bool:
    before, after = query.before, query.after
    if _annotations_of(before) != _annotations_of(after):
        return True
    # Loads and other attributes can wait for the period.
    return before.vector != after.vector and _keys_of(before.vector, query.keys) != _keys_of(after.vector, query.keys)


def _annotations_of(message: StatusVector) -> tuple[object, ...]:
    return message.hears, bool(message.waiting), message.makes_room, message.lets_go, message.missing_links


def _keys_of(vector: Vector, keys: tuple[str, ...]) -> list[tuple[Place, int]]:
    return list(zip(places_of(vector.classes, keys), map(_COUNT_OF, vector.classes), strict=True))


def _is_moved(old: Value, new: Value) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return bucket_of(old) != bucket_of(new)


def _differs(old: Value, new: Value, share: int) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return abs(new - old) * _WHOLE > share * max(abs(old), abs(new))


KEY_CHANGES: Final = DeclaredPart(
    kind=PartKind.UPDATE,
    name="key_changes",
    meaning="tells at once of keys in other buckets, and of own numbers that changed by more than a share",
    make=KeyChanges,
    parameters=(
        Parameter(
            name="share",
            meaning="the change that is worth a vector; with 0% only keys are",
            unit=Unit.SHARE,
            default=0,
            low=0,
            high=_WHOLE,
        ),
    ),
)


def key_changes(share: int = 0) -> NamedPart:
    """Return the part for a share in 1/100 %."""
    whole, rest = divmod(share, 100)
    shown = f"{whole}.{rest:02}".rstrip("0").rstrip(".")
    return NamedPart(declared=KEY_CHANGES, text=f"key_changes(share = {shown}%)", decider=KeyChanges(share=share))
