"""The search for the place of a task, for people: who was asked and why in this order, and what would help."""

from collections.abc import Callable, Iterator
from typing import Final

from messiahs.cli.output import local_time, reason_lines, with_local_times
from messiahs.cli.task.remedies import remedy_lines
from messiahs.client.connection import Document
from messiahs.client.words import code_text, reason_text
from messiahs.core.model.counts import counted
from messiahs.core.model.texts import printable

_SHOWN_CHANGES: Final = 3


def search_lines(document: Document) -> Iterator[str]:
    """Yield what a task waits for, whom the search for its place has asked, and what would have to change.

    Nothing for a task whose module knows none of that: an earlier release, or a task that was never searched for.
    """
    present, search, machines = (document.get(part) for part in ("round", "search", "machines"))
    if present:
        yield _waits_for(present)
    if search:
        yield f"asked since {local_time(search['at'])}, in this order:"
        yield from (f"  {line}" for line in order_lines(search, is_whole=not document.get("reasons")))
    if machines:
        yield from change_lines(machines, search)


def _waits_for(present: Document) -> str:
    if present["is_searching"]:
        return f"waits for the answer of {present['asking']}" if present["asking"] else "a search for a place has begun"
    at = f"searches again by {local_time(present['next_at'])}" if present["next_at"] else "searches again"
    return f"waits for a free place: {at}, or as soon as a neighbor shows room"


def _why_left_out(code: str) -> str:
    # A neighbor without any machine has this code, too, whatever the task needs.
    if code == "no_class":
        return "it has reported no machine, or none that is large enough"
    return f"{code_text(code)}, by what it has reported"


def asked_text(asked: Document) -> str:
    """Return what a system that was asked has answered, in words."""
    if asked["answer"] == "granted":
        return f"granted {counted(asked['places'], 'place')}"
    if asked["answer"] in ("asked", "not_asked"):
        return "is being asked" if asked["answer"] == "asked" else "not asked any more"
    if not asked["reasons"]:
        return code_text(asked["answer"])
    reason = asked["reasons"][0]
    return reason_text(reason).removeprefix(f"{asked['system']}: ")


def order_lines(search: Document, *, is_whole: bool, answer: Callable[[Document], str] = asked_text) -> Iterator[str]:
    """Yield a line for each system, with `is_whole` also what others behind it said, which the reasons have else."""
    for place, asked in enumerate(search["order"], 1):
        yield printable(with_local_times(f"{place}. {asked['system']} ({asked['why']}): {answer(asked)}"))
        if is_whole and asked["reasons"]:
            yield from (f"   {line}" for line in reason_lines(asked["reasons"][0].get("hops", ()), depth=1))
    if not search["order"]:
        yield "nobody: no neighbor that is linked shows a machine that could take it"
    for left in search["left_out"]:
        yield printable(f"not {left['system']}: {_why_left_out(left['code'])}")
    if search["unlisted"]:
        yield f"and {counted(search['unlisted'], 'system')} more"


def change_lines(machines: Document, *searches: Document | None) -> Iterator[str]:
    """Yield how many machines fit a task, and what would have to change so that one takes it, by some searches."""
    known = counted(machines["known"], "machine known here")
    yield f"{_range(machines)} of {known} could take it, if idle and if the owner agrees"
    for loss in machines["lost"]:
        yield printable(f"  {_range(loss)} not: {loss['text']}")
    needed = [*remedy_lines(filter(None, searches))] if machines["most"] else []
    needed += [f"{each['text']} ({_range(each)} could)" for each in machines["changes"][:_SHOWN_CHANGES]]
    if needed:
        yield "it would get a place if"
        yield from (printable(f"  {each}") for each in needed)


def _range(machines: Document) -> str:
    """Return how many machines: of those that do not say, or that are known as groups alone, perhaps."""
    least, most = machines["least"], machines["most"]
    if least == most:
        return str(most)
    return f"{least}, perhaps {most}," if least else f"perhaps {most}"
