"""Events and actions as a reader of a failure wants them: ids as people write them, and nothing that is as usual."""

from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum

from messiahs.core.ids import AttemptId, ClaimId, TaskId
from messiahs.core.vectors import Vector


def terse(value: object) -> str:
    """Write a value on one line."""
    match value:
        case str():
            return value
        case TaskId() | AttemptId() | ClaimId():
            return str(value)
        case Enum():
            return value.name.lower()
        case Vector():
            return f"{sum(each.count for each in value.classes)} machines"
        case bytes():
            return value.hex()[:8]
        case tuple():
            return f"[{', '.join(map(terse, value))}]"
        case _ if is_dataclass(value):
            told = ((field, getattr(value, field.name)) for field in fields(value))
            said = (f"{field.name}={terse(one)}" for field, one in told if not _is_usual(field, one))
            return f"{type(value).__name__}({', '.join(said)})"
        case _:
            return repr(value)


def _is_usual(field: "Field[object]", value: object) -> bool:
    return field.name in ("command", "history", "tdv") or (field.default is not MISSING and field.default == value)
