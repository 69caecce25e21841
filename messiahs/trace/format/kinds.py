"""Every type that a trace can hold, found by the annotations of the core, so that new fields of the state are included.

Values derived from the rest, such as caches, are fields with `compare=False`: they are omitted, and restored to their
defaults. The ports of a state are omitted as well.
"""

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin, get_type_hints

import msgspec

from messiahs.config.policies import PolicySource
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.predicates import Predicate
from messiahs.core.interface.timers import TimerKey, TimerKind, Timers
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState

SCALARS: Final = (NoneType, bool, int, str, bytes)
PORTS: Final = ("policy", "parse", "randomness", "calendar")
"""The fields of a `ModuleState` that its host supplies."""

_CONTAINERS: Final = (tuple, list, dict, deque, Counter)
_UNIONS: Final = (Union, UnionType)
_ADAPTED: Final[Mapping[object, tuple[object, ...]]] = MappingProxyType(
    {Timers: (TimerKind, TimerKey, Instant), Predicate: (str,), Policy: (PolicySource,)}
)
"""Types with a representation of their own (values.py), and the types in that representation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """The types by name; `plain` ones consist of plain values only, and msgspec writes and reads them.

    `fields` are those of the other dataclasses, in the order in which they are written; `derived` are those that are
    not written. For `mutable` types it matters whether two places hold one object or two equal ones. Two builds with
    the same `fingerprint` can read each other's traces.
    """

    by_name: Mapping[str, type]
    plain: frozenset[type]
    fields: Mapping[type, tuple[str, ...]]
    derived: Mapping[type, tuple["dataclasses.Field[Any]", ...]]
    mutable: frozenset[type]
    fingerprint: str


@cache
def kinds_in(root: type) -> Kinds:
    """Return all types in a dataclass and its fields; a `TypeError` names a type that a trace cannot hold.

    It takes some milliseconds, and is called when first needed.
    """
    found = dict.fromkeys(_reachable(root))
    by_name = {kind.__name__: kind for kind in found}
    if len(by_name) != len(found):
        raise TypeError("two types of the core have the same name")
    plain = frozenset(kind for kind in found if _is_plain(kind) and _is_readable(kind))
    walked = [kind for kind in found if kind not in plain]
    return Kinds(
        by_name=by_name,
        plain=plain,
        fields={kind: tuple(name for name, _ in _members(kind)) for kind in walked},
        derived={kind: tuple(_derived(kind)) for kind in walked},
        mutable=frozenset(kind for kind in walked if not _is_frozen(kind)),
        fingerprint=sha256("".join(sorted(map(_signature, found))).encode()).hexdigest()[:16],
    )


def _reachable(root: type) -> Iterator[type]:
    """Yield the types in a fixed order."""
    seen: dict[object, None] = {}
    waiting: list[tuple[object, str]] = [(root, "")]
    while waiting:
        hint, where = waiting.pop()
        if hint in seen:
            continue
        seen[hint] = None
        parts = _parts(hint)
        if parts is not None:
            waiting.extend((part, where) for part in parts)
        elif isinstance(hint, type) and _is_composed(hint):
            yield hint
            waiting.extend((part, f"{hint.__name__}.{name}") for name, part in _members(hint))
        else:
            raise TypeError(f"a trace cannot hold {hint}, which is in {where}")


def _parts(hint: object) -> Iterable[object] | None:
    """Return the parts of a hint that is not a type of its own; scalars have none."""
    if hint is None or hint in SCALARS:
        return ()
    if hint in _ADAPTED:
        return _ADAPTED[hint]
    if isinstance(hint, NewType):
        return (hint.__supertype__,)
    if get_origin(hint) in (*_CONTAINERS, *_UNIONS):
        return tuple(part for part in get_args(hint) if part is not Ellipsis)
    return None


def _is_composed(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or issubclass(kind, Enum) or hasattr(kind, "_fields")


@cache
def _members(kind: type) -> tuple[tuple[str, object], ...]:
    """Return the written fields, with their hints."""
    if issubclass(kind, Enum):
        return ()
    left_out = {field.name for field in _derived(kind)} | set(PORTS if kind is ModuleState else ())
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(hints)
    return tuple((name, hints[name]) for name in names if name not in left_out)


def _derived(kind: type) -> Iterator["dataclasses.Field[Any]"]:
    if not dataclasses.is_dataclass(kind):
        return
    for field in dataclasses.fields(kind):
        if not field.compare:
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise TypeError(f"{kind.__name__}.{field.name} is left out of traces, so it needs a default")
            yield field


def _is_plain(hint: object, within: tuple[object, ...] = ()) -> bool:
    """Return whether a hint denotes values that are immutable in all of their parts."""
    if hint is None or hint in SCALARS or hint in within:
        return True
    if isinstance(hint, NewType):
        return _is_plain(hint.__supertype__, within)
    if get_origin(hint) is not None:
        is_fixed = get_origin(hint) in (tuple, *_UNIONS)
        return is_fixed and all(_is_plain(part, within) for part in _parts(hint) or ())
    if not isinstance(hint, type) or hint in _ADAPTED:
        return False
    if dataclasses.is_dataclass(hint) and (not _is_frozen(hint) or any(_derived(hint))):
        return False
    return all(_is_plain(part, (*within, hint)) for _, part in _members(hint))


def _is_frozen(kind: type) -> bool:
    return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _is_readable(kind: type) -> bool:
    """Return whether msgspec can distinguish the members of every union in a type."""
    try:
        msgspec.msgpack.Decoder(kind)
    except TypeError:
        return False
    return True


def _signature(kind: type) -> str:
    parts = [f"{name}: {hint}" for name, hint in _members(kind)]
    if issubclass(kind, Enum):
        parts = [f"{each.name}={each.value}" for each in kind]
    return f"{kind.__name__}({', '.join(parts)})"
