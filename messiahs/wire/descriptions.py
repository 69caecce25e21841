"""Task descriptions and update vectors on the wire (MESSIAHS 5.1, 5.2)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from messiahs.core.model.attributes import (
    EXTENSION_LIMIT,
    INTEGER_HIGHEST,
    INTEGER_LOWEST,
    MACHINE_ATTRIBUTES,
    STRING_LIMIT_BYTES,
    TASK_ATTRIBUTES,
    Attribute,
    Kind,
    Value,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.series import attributes_in_history
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import (
    VARIOUS,
    ClassValue,
    Interval,
    MachineClass,
    Strings,
    Vector,
    interval,
    sort_key,
)
from messiahs.errors import CodecError
from messiahs.wire.limits import CLASS_LIMIT, VECTOR_LIMIT_BYTES, amount, at_most, attribute_name, line
from messiahs.wire.v1 import descriptions_pb2

_LOWEST_BUCKET: Final = bucket_of(INTEGER_LOWEST)
_HIGHEST_BUCKET: Final = bucket_of(INTEGER_HIGHEST)
_HISTORY_BUCKETS: Final = {
    each.name: (
        _LOWEST_BUCKET if each.low is None else bucket_of(each.low),
        _HIGHEST_BUCKET if each.high is None else bucket_of(each.high),
    )
    for attribute in MACHINE_ATTRIBUTES.values()
    if attribute.kind is Kind.INTEGER
    for each in attributes_in_history(attribute)
}
_ALWAYS_IN_A_TDV: Final = ("cpus", "origin", "user")

# A column of a shape is name * 8 + lacking * 4 + kind.
_INTERVAL: Final = 1
_STRING: Final = 2
_VARIOUS: Final = 3
_LACKING: Final = 4
_NAME_STEP: Final = 8


class _Shape(NamedTuple):
    """A received shape: names and kinds of the attributes, and the number of values of a class that has it."""

    columns: tuple[tuple[str, int], ...]
    some_lack: tuple[str, ...]
    width: int


def write_tdv(wire: descriptions_pb2.TaskDescription, tdv: TDV) -> None:
    """Fill in the description of a task."""
    for name, value in tdv.pairs:
        if isinstance(value, str):
            wire.pairs.add(name=name, text=value)
        else:
            wire.pairs.add(name=name, integer=value)


def read_tdv(wire: descriptions_pb2.TaskDescription) -> TDV:
    """Check the description of a task: names ascend without repetition, and catalogued attributes have their type."""
    at_most(len(wire.pairs), len(TASK_ATTRIBUTES) + EXTENSION_LIMIT, what="attributes")
    pairs = tuple(map(_read_pair, wire.pairs))
    names = [name for name, _ in pairs]
    _check_names(names, TASK_ATTRIBUTES)
    for name in _ALWAYS_IN_A_TDV:
        if name not in names:
            raise CodecError(f"a task description without {name}")
    return TDV(pairs)


def _read_pair(wire: descriptions_pb2.Pair) -> tuple[str, Value]:
    name = attribute_name(wire.name)
    known = TASK_ATTRIBUTES.get(name)
    match wire.WhichOneof("value"):
        case "integer" if known is None or known.kind is Kind.INTEGER:
            return (name, wire.integer)
        case "text" if known is None or known.kind is Kind.STRING:
            return (name, line(wire.text, STRING_LIMIT_BYTES))
        case _:
            raise CodecError(f"{name} has no value of its type")


def _check_names(names: Sequence[str], catalogue: dict[str, Attribute]) -> None:
    if any(one >= other for one, other in pairwise(names)):
        raise CodecError("attributes are not sorted, or one appears twice")
    at_most(len(set(names) - catalogue.keys()), EXTENSION_LIMIT, what="extension attributes")


def write_vector(wire: descriptions_pb2.Vector, vector: Vector) -> None:
    """Fill in an update vector; a `CodecError` if it has too many classes or bytes."""
    at_most(len(vector.classes), CLASS_LIMIT, what="classes")
    strings: dict[str, int] = {}
    shapes: dict[tuple[int, ...], int] = {}
    for machine_class in vector.classes:
        columns = tuple(_columns(machine_class, strings))
        shape = shapes.setdefault(columns, len(shapes))
        wire.classes.add(shape=shape, count=machine_class.count, values=_values(machine_class, strings))
    wire.strings.extend(strings)
    for columns in shapes:
        wire.shapes.add(columns=columns)
    at_most(wire.ByteSize(), VECTOR_LIMIT_BYTES, what="bytes of vector")


def _columns(machine_class: MachineClass, strings: dict[str, int]) -> Iterable[int]:
    for name, value in machine_class.attributes:
        lacking = _LACKING if name in machine_class.some_lack else 0
        yield strings.setdefault(name, len(strings)) * _NAME_STEP + lacking + _kind_of(value)


def _kind_of(value: ClassValue) -> int:
    if isinstance(value, Interval):
        return _INTERVAL
    return _VARIOUS if isinstance(value, Strings) else _STRING


def _values(machine_class: MachineClass, strings: dict[str, int]) -> list[int]:
    values: list[int] = []
    for _, value in machine_class.attributes:
        if isinstance(value, Interval):
            values += (value.low, value.high - value.low)
        elif isinstance(value, str):
            values.append(strings.setdefault(value, len(strings)))
    return values


def read_vector(wire: descriptions_pb2.Vector) -> Vector:
    """Check an update vector and sort its classes."""
    at_most(wire.ByteSize(), VECTOR_LIMIT_BYTES, what="bytes of vector")
    at_most(len(wire.classes), CLASS_LIMIT, what="classes")
    at_most(len(wire.shapes), CLASS_LIMIT, what="shapes")
    strings = [line(text, STRING_LIMIT_BYTES) for text in wire.strings]
    shapes = [_read_shape(shape.columns, strings) for shape in wire.shapes]
    _check_extensions(shapes)
    classes = [_read_class(machine_class, shapes, strings=strings) for machine_class in wire.classes]
    if not all(_is_before(one, other) for one, other in pairwise(classes)):
        classes.sort(key=sort_key)
    return Vector(tuple(classes))


def _is_before(one: MachineClass, other: MachineClass) -> bool:
    """Compare two classes by `sort_key` at the first attribute in which they differ; whole keys are expensive."""
    at = 0
    for value, other_value in zip(one.attributes, other.attributes, strict=False):
        if value != other_value:
            break
        at += 1
    return sort_key(_from(one, at)) <= sort_key(_from(other, at))


def _from(machine_class: MachineClass, at: int) -> MachineClass:
    attributes = machine_class.attributes[at : at + 1]
    return MachineClass(count=machine_class.count, attributes=attributes, some_lack=machine_class.some_lack)


def _read_shape(wire: Sequence[int], strings: list[str]) -> _Shape:
    columns, some_lack = [], []
    for column in wire:
        place, bits = divmod(column, _NAME_STEP)
        kind = bits & ~_LACKING
        if place >= len(strings) or kind == 0:
            raise CodecError("a vector's shape is malformed")
        name = attribute_name(strings[place])
        columns.append((name, kind))
        if bits & _LACKING:
            some_lack.append(name)
    _check_names([name for name, _ in columns], MACHINE_ATTRIBUTES)
    width = sum({_INTERVAL: 2, _STRING: 1, _VARIOUS: 0}[kind] for _, kind in columns)
    return _Shape(tuple(columns), tuple(some_lack), width)


def _check_extensions(shapes: list[_Shape]) -> None:
    names = {name for shape in shapes for name, _ in shape.columns}
    at_most(len(names - MACHINE_ATTRIBUTES.keys()), EXTENSION_LIMIT, what="extension attributes")


def _bounded(name: str, low: int, high: int) -> Interval:
    """Return an interval of buckets; that of an attribute of a history is brought into the attribute's range.

    It is not refused: a system between might not know of the range.
    """
    least, most = _HISTORY_BUCKETS.get(name, (_LOWEST_BUCKET, _HIGHEST_BUCKET))
    return interval(min(most, max(least, low)), max(least, min(most, high)))


def _read_class(wire: descriptions_pb2.MachineClass, shapes: list[_Shape], *, strings: list[str]) -> MachineClass:
    values = list(wire.values)
    if wire.shape >= len(shapes) or len(values) != shapes[wire.shape].width:
        raise CodecError("a class does not have the values of its shape")
    shape = shapes[wire.shape]
    attributes: list[tuple[str, ClassValue]] = []
    at = 0
    for name, kind in shape.columns:
        if kind == _INTERVAL:
            low, distance = values[at], values[at + 1]
            if low < _LOWEST_BUCKET or distance < 0 or low + distance > _HIGHEST_BUCKET:
                raise CodecError(f"{low} with a width of {distance} is not an interval of buckets")
            attributes.append((name, _bounded(name, low, low + distance)))
            at += 2
        elif kind == _STRING:
            attributes.append((name, _string(values[at], strings)))
            at += 1
        else:
            attributes.append((name, VARIOUS))
    return MachineClass(count=amount(wire.count, lowest=1), attributes=tuple(attributes), some_lack=shape.some_lack)


def _string(place: int, strings: list[str]) -> str:
    if not 0 <= place < len(strings):
        raise CodecError("a class refers to a string that is missing")
    return strings[place]
