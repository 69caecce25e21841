"""Conversion of any value of the core to bytes and back, with exact types, dictionary order and shared objects.

A value is a tree in MessagePack. Scalars are written as they are, everything else as an array that begins with a tag:
the name of a type, `()` for a tuple, `[]` for a list, `@` for an object written before.
"""

import dataclasses
from collections import Counter, deque
from collections.abc import Container, Mapping
from typing import Any, Final

import msgspec

from messiahs.config.policies import source_of
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.timers import Timers
from messiahs.language.predicate.predicates import ParsedPredicate, predicate_parser
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.format.kinds import SCALARS, Kinds

Tree = Any
"""The result of msgspec's decoder of untyped MessagePack."""

_TUPLE, _LIST, _DICT, _DEQUE, _COUNTER = "()", "[]", "{}", "deque", "Counter"
_AGAIN, _TIMERS, _PREDICATE, _POLICY = "@", "Timers", "Predicate", "Policy"
_SCALARS: Final = frozenset(SCALARS)


def encode(value: object, kinds: Kinds, *, is_canonical: bool = False) -> bytes:
    """Return a value as bytes; a `TypeError` names a type that is not among `kinds`.

    With `is_canonical`, indistinguishable values have the same bytes; without it the result is shorter.
    """
    return msgspec.msgpack.encode(_Writer(kinds, kinds.mutable if is_canonical else kinds.fields).tree(value))


def decode(data: bytes, kinds: Kinds, ports: Mapping[str, object], /) -> Any:  # noqa: ANN401 - the caller knows its type
    """Return the value; a state in it has these ports. Bytes of another form raise some exception."""
    return _Reader(kinds, ports).value(msgspec.msgpack.decode(data))


class _Writer:
    """Writes one value; each object of the `shared` types is written once (mutable)."""

    def __init__(self, kinds: Kinds, shared: Container[type]) -> None:
        self._kinds, self._shared = kinds, shared
        self._numbers: dict[int, int] = {}
        self._written = 0

    def tree(self, value: object) -> Tree:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind in self._kinds.plain:
            return (kind.__name__, value)
        if kind is tuple:
            return (_TUPLE, *map(self.tree, value))  # type: ignore[call-overload]
        names = self._kinds.fields.get(kind)
        if names is not None:
            return self._object(value, names)
        return self._other(value)

    def _object(self, value: object, names: tuple[str, ...]) -> Tree:
        number = self._numbers.get(id(value))
        if number is not None:
            return (_AGAIN, number)
        tree = (type(value).__name__, *[self.tree(getattr(value, name)) for name in names])
        if type(value) in self._shared:
            self._numbers[id(value)] = self._written
        # Counted when complete, as in the reader.
        self._written += 1
        return tree

    def _other(self, value: object) -> Tree:
        match value:
            case Counter():
                return (_COUNTER, *(self.tree(part) for pair in value.items() for part in pair))
            case dict():
                return (_DICT, *(self.tree(part) for pair in value.items() for part in pair))
            case list():
                return (_LIST, *map(self.tree, value))
            case deque():
                return (_DEQUE, *map(self.tree, value))
            case Timers():
                return (_TIMERS, *(self.tree(part) for timeout in value.waiting() for part in timeout))
            case ParsedPredicate():
                return (_PREDICATE, value.text)
            case CompiledPolicy() | OpenPolicy():
                return (_POLICY, self.tree(source_of(value)))
            case _:
                raise TypeError(f"a trace cannot hold {type(value).__name__}")


class _Reader:
    """Reads one value (mutable)."""

    def __init__(self, kinds: Kinds, ports: Mapping[str, object]) -> None:
        self._kinds, self._ports = kinds, ports
        self._objects: list[object] = []

    def value(self, tree: Tree) -> Any:  # noqa: ANN401 - of any type
        if type(tree) is not list:
            return tree
        tag, parts = tree[0], tree[1:]
        match tag:
            case "()":
                return tuple(map(self.value, parts))
            case "@":
                return self._objects[parts[0]]
            case "{}":
                return self._pairs(parts)
            case "Counter":
                return Counter(self._pairs(parts))
            case "[]":
                return list(map(self.value, parts))
            case "deque":
                return deque(map(self.value, parts))
            case "Timers":
                return self._timers(parts)
            case "Predicate":
                return _predicate(parts[0])
            case "Policy":
                return self.value(parts[0]).policy()
            case _:
                return self._named(self._kinds.by_name[tag], parts)

    def _pairs(self, parts: list[Tree]) -> dict[Any, Any]:
        values = map(self.value, parts)
        return dict(zip(values, values, strict=True))

    def _timers(self, parts: list[Tree]) -> Timers:
        values = map(self.value, parts)
        timers = Timers()
        for kind, key, deadline in zip(values, values, values, strict=True):
            timers.set(kind, key, deadline)
        return timers

    def _named(self, kind: type, parts: list[Tree]) -> Any:  # noqa: ANN401 - of that type
        if kind in self._kinds.plain:
            return msgspec.convert(parts[0], kind)
        made: object = object.__new__(kind)
        names = self._kinds.fields[kind]
        for name, part in zip(names, map(self.value, parts), strict=True):
            object.__setattr__(made, name, part)
        for field in self._kinds.derived[kind]:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            object.__setattr__(made, field.name, default)
        for field in dataclasses.fields(kind):
            if field.name not in names and field.name in self._ports:
                object.__setattr__(made, field.name, self._ports[field.name])
        self._objects.append(made)
        return made


def _predicate(text: str) -> object:
    parsed = predicate_parser(text)
    if isinstance(parsed, BadPredicate):
        raise TypeError(f"`{text}` is not a predicate: {parsed.text}")
    return parsed
