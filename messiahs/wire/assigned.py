"""The counted things that an attempt has, on the wire."""

from collections.abc import Iterable

from messiahs.core.model.counted import COUNTED_NAME, HIGHEST_NUMBER, KINDS, THINGS, Counted
from messiahs.errors import CodecError
from messiahs.wire.limits import at_most
from messiahs.wire.v1 import control_pb2


def write_assigned(wire: control_pb2.AttemptStatus, assigned: Iterable[Counted]) -> None:
    """Fill in the counted things of an attempt."""
    for things in assigned:
        wire.assigned.add(name=things.name, numbers=things.numbers)


def read_assigned(wire: control_pb2.AttemptStatus) -> tuple[Counted, ...]:
    """Check the counted things of an attempt."""
    at_most(len(wire.assigned), KINDS, what="kinds of counted things")
    return tuple([_read(one) for one in wire.assigned])


def _read(wire: control_pb2.Assigned) -> Counted:
    at_most(len(wire.numbers), THINGS, what="counted things")
    if not COUNTED_NAME.fullmatch(wire.name):
        raise CodecError(f"{wire.name[:80]!r} is not a name of counted things")
    if any(number > HIGHEST_NUMBER for number in wire.numbers):
        raise CodecError(f"the numbers of {wire.name} are not in 0 to {HIGHEST_NUMBER}")
    return Counted(name=wire.name, numbers=tuple(wire.numbers))
