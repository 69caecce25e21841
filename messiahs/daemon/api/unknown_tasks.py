"""Why an id names no task, in words."""

from collections.abc import Collection, Mapping, Sequence

from messiahs.core.model.attributes import Unit
from messiahs.core.model.counts import counted
from messiahs.core.model.ids import LostNumbers, TaskId
from messiahs.core.model.instants import DAY, SECOND, instant_text
from messiahs.language.syntax.quantities import shown


def members_for(items: Sequence[str], wanted: Collection[str]) -> dict[str, int]:
    """Return the first member for each of the wanted items that an array has."""
    found: dict[str, int] = {}
    for member, item in enumerate(items, start=1):
        if item in wanted:
            found.setdefault(item, member)
    return found


def why_no_member(text: str, array: TaskId, /, *, count: int, members: Mapping[str, int]) -> str:
    """Return why the id of a member names none of so many; `members` are those for some items (`members_for`)."""
    number = text.rpartition(".")[2]
    if not count:
        return f"there is no {text}: {array} is a single task, without members"
    other = f"; {array}.{members[number]} is that for {number}" if number in members else ""
    return f"there is no {text}: {array} has {counted(count, 'member')}, {array}.1 to {array}.{count}{other}"


def why_forgotten(text: str, retention_ns: int | None) -> str:
    """Return why a task that has been here is not known any more, where ended tasks are kept for so long."""
    if retention_ns is None:
        return f"no task {text} is known here any more: it has ended, and was cleaned up"
    days, rest_ns = divmod(retention_ns, DAY)
    period = shown(max(1, retention_ns // SECOND), Unit.SECONDS) if rest_ns else counted(days, "day")
    return f"no task {text} is known here any more: ended tasks are kept for {period}, or until they are cleaned up"


def why_lost(text: str, lost: LostNumbers) -> str:
    """Return why nothing is known of a task whose number was skipped."""
    since = instant_text(lost.at)
    if lost.is_copy:
        why = (
            f"since {since} the module continues from an older copy of its state, and what was submitted after the copy"
        )
        return f"no task {text} is known here: {why} was made is not known"
    why = (
        f"at {since} a neighbor remembered more numbers than this module had, whose state was lost or is an older copy"
    )
    return f"no task {text} is known here: {why}, and what was submitted with them is not known"
