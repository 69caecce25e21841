"""What an attempt used, on the wire."""

from typing import Final

from messiahs.core.model.usage import Usage
from messiahs.errors import CodecError
from messiahs.wire.limits import USAGE_END
from messiahs.wire.v1 import control_pb2

_FIELDS: Final = ("cpu_ns", "peak_memory_bytes", "written_bytes", "read_bytes", "suspended_ns")


def write_usage(wire: control_pb2.Usage, usage: Usage) -> None:
    """Fill in a usage; a larger value than a message can have is cut to the largest one."""
    wire.SetInParent()
    for name in _FIELDS:
        value = getattr(usage, name)
        if value is not None:
            setattr(wire, name, min(value, USAGE_END - 1))


def read_usage(wire: control_pb2.Usage) -> Usage:
    """Check a usage: whoever adds up values of a few tasks must get no number that nobody can store."""
    values = {name: getattr(wire, name) for name in _FIELDS if wire.HasField(name)}
    for name, value in values.items():
        if value >= USAGE_END:
            raise CodecError(f"a {name} of {value} is too large")
    return Usage(**values)
