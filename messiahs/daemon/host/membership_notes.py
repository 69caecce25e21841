"""What an administrator is told of a drained module, of links that are being ended, and of cycles of parents."""

from collections.abc import Iterator

from messiahs.core import queries
from messiahs.core.closing import Remaining
from messiahs.daemon.storage.documents import time_document
from messiahs.trace.record.recorder import RecordedModule


def membership_notes(module: RecordedModule) -> Iterator[str]:
    """Yield a line for the drain, for each parent in a cycle, and for each neighbor that leaves."""
    drain = queries.drain_of(module.state)
    if drain is not None:
        until = "" if drain.deadline is None else f", what runs is revoked at {time_document(drain.deadline)}"
        why = f": {drain.text}" if drain.text else ""
        yield f"drained since {time_document(drain.since)}{why} ({left_text(queries.remaining(module.state))}{until})"
    for parent in queries.cycles_of(module.state):
        advice = (
            f"remove one of these relations in the topology file, or leave it with `messiahs module leave {parent}`"
        )
        yield f"its parent {parent} is also below it: {advice}"
    for row in queries.removed_from(module.state).values():
        if not row.is_ended:
            left = queries.remaining_with(module.state, row.system)
            yield f"the link with {row.system} is being ended: {_left_with(left)}"


def left_text(left: Remaining) -> str:
    """Return what a drain still waits for."""
    if left.is_empty:
        return "it is empty"
    parts = ((left.attempts, "attempt"), (left.granted, "claim granted"), (left.passed, "claim passed on"))
    return ", ".join(_counted(count, what) for count, what in parts if count) + " left"


def _left_with(left: Remaining) -> str:
    if left.is_empty and not left.held:
        return "it is asked to agree"
    held = f"{_counted(left.held, 'claim held')} there" if left.held else ""
    return "; ".join(filter(None, ["" if left.is_empty else left_text(left), held]))


def _counted(count: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{count} {noun}{'' if count == 1 else 's'}{f' {rest}' if rest else ''}"
