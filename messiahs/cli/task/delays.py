"""Why tasks that have not ended make no progress, for people: below `status`, and on stderr of `run`."""

from collections.abc import Iterable, Iterator

from messiahs.cli.output import conditions_of, is_held, local_time, reason_lines
from messiahs.client.connection import Document
from messiahs.client.status import is_final
from messiahs.core.model.texts import printable

_FILES = ("waits for its files", "wait for their files")
_OUTPUT = ("has ended, and its output is not here yet", "have ended, and their output is not here yet")
_LOST = ("may be lost", "may be lost")
_CUT_OFF = ("cannot be reached", "cannot be reached")
_HOLD = ("is on hold", "are on hold")
_HOLDS = ("has members on hold", "have members on hold")
_PLACE = ("waits; asked and refused by", "wait; asked and refused by")


def delay_lines(tasks: Iterable[Document]) -> Iterator[str]:
    """Yield what tasks wait for, since when, and why; tasks that share all of that share the lines."""
    alike: dict[tuple[tuple[str, str], tuple[str, ...]], list[str]] = {}
    since: dict[str, str] = {}
    for document in tasks:
        why = why_delayed(document)
        if why or conditions_of(document):
            alike.setdefault((_verbs(document), why), []).append(document["id"])
            begun = (_hold_or_delay(document) or {}).get("since")
            since[document["id"]] = f" since {local_time(begun)}" if begun else ""
    for ((one, many), why), (first, *others) in alike.items():
        yield f"{first} and {len(others)} more {many}{since[first]}" if others else f"{first} {one}{since[first]}"
        yield from (f"  {line}" for line in why)


def why_delayed(document: Document) -> tuple[str, ...]:
    """Return the lines that say why a task makes no progress; none if it has ended, or if nothing is known."""
    if is_final(document):
        return ()
    if not is_held(document) and (conditions := conditions_of(document)):
        return (*(f"and {each}" for each in conditions[1:]), *reason_lines(document.get("reasons", ())))
    if "counts" in document:
        return tuple(map(_members_on_hold, document.get("holds", ())))
    if is_held(document):
        return (
            *filter(None, [printable(document["hold"]["reason"])]),
            "nothing searches for a place until its release",
        )
    delay = document.get("delay")
    texts = [printable(delay["text"] or "the transfer broke")] if delay else []
    if delay and delay.get("until"):
        texts.append(
            f"it may still run there, and runs again when its lease has expired, by {local_time(delay['until'])}"
        )
    return (*texts, *reason_lines(document.get("reasons", ())))


def _hold_or_delay(document: Document) -> Document | None:
    found: Document | None = document.get("hold" if is_held(document) else "delay")
    return found


def _members_on_hold(run: Document) -> str:
    which = f"{run['first']} is" if run["first"] == run["last"] else f"{run['first']} to {run['last']} are"
    why = f": {run['reason']}" if run["reason"] else ""
    return printable(f"{which} on hold since {local_time(run['since'])}{why}")


def _verbs(document: Document) -> tuple[str, str]:
    if not is_held(document) and (conditions := conditions_of(document)):
        return f"waits {conditions[0]}", f"wait {conditions[0]}"
    if "counts" in document or is_held(document):
        return _HOLDS if "counts" in document else _HOLD
    delay = document.get("delay")
    if delay:
        return {"outputs": _OUTPUT, "attempt": _LOST}.get(delay["of"], _FILES)
    return _PLACE if document.get("substate") == "queued" else _CUT_OFF
