"""The outputs of an ended attempt that its origin accepts: the declared ones, up to a limit (MESSIAHS 5.3.3).

The declaration in the origin's own row decides, not the executor's report: otherwise a hostile executor could write any
file into the user's folder, or fill the origin's disk.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final, NamedTuple

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import AttemptStatus, TaskState
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.output_names import DECLARED_PREFIX, LOGS, MISSING, NAMES_LIMIT_BYTES, Declared, missing_text
from messiahs.core.model.task_files import Output

LIMIT_BYTES: Final = 16 << 30
"""Limit of all outputs of an attempt together, if its task states no `$disk`."""
LEAST_LIMIT_BYTES: Final = 64 << 20
"""Lower bound of that limit, for small values of `$disk`."""


class Accepted(NamedTuple):
    """The status of an ended attempt with its accepted outputs, and the names of the undeclared ones."""

    status: AttemptStatus
    undeclared: tuple[str, ...]


def accepted(status: AttemptStatus, declared: Collection[str], *, tdv: TDV, most_bytes: int | None = None) -> Accepted:
    """Drop undeclared outputs; if the rest exceeds the limit, keep only the logs that fit and abort a finished task.

    The limit is that of the task, or `most_bytes`, the site's maximum for any task, if that is less.
    Missing outputs abort a finished task, too. They are named, also if a border withheld the executor's text: their
    names came from here.
    """
    names = Declared(declared)
    outputs, undeclared = _declared_outputs(status.outputs, names)
    status = _with_missing(status, outputs, names)
    limit_bytes = own_bytes = limit_of(tdv)
    if most_bytes is not None:
        limit_bytes = min(own_bytes, most_bytes)
    total_bytes = sum(output.size_bytes for output in outputs)
    if total_bytes <= limit_bytes:
        return Accepted(replace(status, outputs=outputs) if outputs != status.outputs else status, undeclared)
    kept = replace(status, outputs=_logs_within(outputs, limit_bytes))
    if status.state is TaskState.FINISHED:
        whose = "the limit" if limit_bytes == own_bytes else "what this site takes of one task, the limit"
        hint = ": raise it with --disk SIZE" if limit_bytes == own_bytes else ""
        text = f"its outputs take {total_bytes} bytes, more than {whose} of {limit_bytes}{hint}"
        kept = replace(kept, state=TaskState.ABORTED, cause=Cause.TOO_MUCH_OUTPUT, text=text)
    return Accepted(kept, undeclared)


def limit_of(tdv: TDV) -> int:
    """Return the limit of all outputs of one attempt together, in bytes: the stated `$disk`, or a fixed limit."""
    disk = tdv.description().get("disk")
    return max(LEAST_LIMIT_BYTES, disk) if isinstance(disk, int) else LIMIT_BYTES


def _declared_outputs(outputs: tuple[Output, ...], declared: Declared) -> tuple[tuple[Output, ...], tuple[str, ...]]:
    """Separate declared outputs that could all be written below one folder from the others.

    Names beyond what an executor may report count as undeclared, and are not compared: they could be many and long.
    """
    kept: dict[str, Output] = {}
    undeclared: list[str] = []
    names_bytes = 0
    for output in outputs:
        path = output.name.removeprefix(DECLARED_PREFIX)
        if output.name in kept:
            continue
        if output.name in LOGS:
            kept[output.name] = replace(output, is_executable=False) if output.is_executable else output
            continue
        names_bytes += len(path.encode())
        if path != output.name and names_bytes <= NAMES_LIMIT_BYTES and declared.covers(path):
            kept[output.name] = output
        else:
            undeclared.append(output.name)
    # A file and a folder of the same name exclude each other.
    for name in _inside_others(kept):
        undeclared.append(name)
        del kept[name]
    return tuple(kept.values()), tuple(undeclared)


def _with_missing(status: AttemptStatus, outputs: tuple[Output, ...], declared: Declared) -> AttemptStatus:
    """Name missing outputs; an executor that reports a finished task without them is not believed."""
    is_finished = status.state is TaskState.FINISHED
    is_named = status.cause != Cause.OUTPUT_MISSING or status.text.startswith(MISSING)
    if is_named and not is_finished:
        return status
    arrived = [output.name.removeprefix(DECLARED_PREFIX) for output in outputs if output.name not in LOGS]
    missing = declared.missing(arrived)
    if not missing:
        return status
    status = replace(status, text=missing_text(missing))
    return replace(status, state=TaskState.ABORTED, cause=Cause.OUTPUT_MISSING) if is_finished else status


def _inside_others(names: Collection[str]) -> list[str]:
    """Return the names for which another name is a folder above them."""
    inside: list[str] = []
    folder = None
    # With a separator that sorts before every other character, the contents of a folder directly follow its name.
    for name in sorted(names, key=lambda name: name.replace("/", "\0")):
        if folder is not None and name.startswith(f"{folder}/"):
            inside.append(name)
        else:
            folder = name
    return inside


def _logs_within(outputs: tuple[Output, ...], limit_bytes: int) -> tuple[Output, ...]:
    kept: list[Output] = []
    for output in outputs:
        if output.name in LOGS and output.size_bytes <= limit_bytes:
            kept.append(output)
            limit_bytes -= output.size_bytes
    return tuple(kept)
