"""What an administrator is told of a drain, of the owner's dial, of links that are being ended, and of cycles."""

from collections.abc import Iterator

from messiahs.core import queries
from messiahs.core.closing import Remaining
from messiahs.core.interface.lending import LendRow
from messiahs.core.model.counts import counted, left_text
from messiahs.daemon.storage.documents import time_document
from messiahs.trace.record.recorder import RecordedModule


def membership_notes(module: RecordedModule, *, has_joined: bool) -> Iterator[str]:
    """Yield a line for the drain, now or announced, the owner's dial, parents in a cycle or lost, and who leaves.

    `has_joined` says that the module joined with a token, so that another one brings a lost parent back.
    """
    drain = queries.drain_of(module.state)
    if drain is not None:
        until = "" if drain.deadline is None else f", deadline {time_document(drain.deadline)}"
        why = f": {drain.text}" if drain.text else ""
        left = _what_is_left(queries.remaining(module.state))
        yield f"drained since {time_document(drain.since)}{why} ({left}{until})"
    announced = queries.announced_of(module.state)
    if announced is not None:
        until = "" if announced.deadline is None else f"; what still runs at {time_document(announced.deadline)} moves"
        why = f": {announced.text}" if announced.text else ""
        yield f"away for maintenance from {time_document(announced.begins)}{why}{until}"
    lending = queries.lending_of(module.state)
    if lending is not None:
        yield _lent_text(lending)
    for parent, advice in queries.cycles_of(module.state).items():
        yield f"its parent {parent} is also below it: {advice}"
    for parent, why in queries.lost_parents(module.state).items():
        because = f" ({why})" if why else ""
        again = f", and its topology file lists {parent}: `messiahs topology apply FILE` adds it again"
        if has_joined:
            again = f": `messiahs module parent add` with a new token of {parent} adds it again"
        yield f"the link with its parent {parent} has ended{because}{again}"
    for row in queries.removed_from(module.state).values():
        if not row.is_ended:
            on_link = queries.remaining_with(module.state, row.system)
            yield f"the link with {row.system} is being ended: {_left_with(on_link)}"


def _lent_text(row: LendRow) -> str:
    until = "" if row.until is None else f" until {time_document(row.until)}"
    by = f", by {row.by}" if row.by else ""
    how = f"lent{until}" if row.is_on else f"not lent to others{until}"
    return f"{how} (`messiahs lend` since {time_document(row.since)}{by})"


def _what_is_left(left: Remaining) -> str:
    return left_text(attempts=left.attempts, granted=left.granted, passed=left.passed)


def _left_with(left: Remaining) -> str:
    if left.is_empty and not left.held:
        return "it is asked to agree"
    held = f"{counted(left.held, 'claim held')} there" if left.held else ""
    return "; ".join(filter(None, ["" if left.is_empty else _what_is_left(left), held]))
