"""What would have to change at the systems that have denied a task, by what they have said.

A denial has those of the systems that were asked in turn (`hops`), and its code may be one of theirs. So the last one
on each way that is known to have refused is named, and one before it only for what it said of itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Final

from messiahs.client.connection import Document
from messiahs.client.words import is_passed_on
from messiahs.core.model.texts import AWAY, DRAINED, NOT_FOREIGN, NOT_LENT, OWN_MACHINE, WITHHELD

_SHOWN_NAMES: Final = 3
_BY_CODE: Final = MappingProxyType(
    {
        "refused_by_policy": "the policy and the owner of {} let it in",
        "limit_reached": "the limit of {} were not reached",
        "no_capacity": "a place became free at {}",
        "draining": "the drain of {} ended",
        "lost": "{} were linked again",
        "timed_out": "{} answered in time",
        "unreachable": "tasks could be sent to {}",
        "no_space": "the disk of {} had space",
    }
)
"""What would have to change at a system, by the code of its denial; those about machines are in the counts."""
_POLICY: Final = "the policy of {} let it in"
_BY_TEXT: Final = MappingProxyType(
    {
        NOT_LENT: "the owner of {} lent it again",
        AWAY: "the announced maintenance of {} ended",
        DRAINED: _BY_CODE["draining"],
        NOT_FOREIGN: _BY_CODE["refused_by_policy"],
        OWN_MACHINE: "",
    }
)
"""By how a part of its text begins, which is more exact than the code; nothing for what is in the counts."""
_SHOWS_NO_ROOM: Final = frozenset((_BY_TEXT[NOT_LENT], _BY_TEXT[AWAY], _BY_CODE["draining"]))
"""A system of which these are true shows no free place, so those who asked it may say that nothing is free."""

Remedy = tuple[str, str]
"""What would have to change, and at which system."""


def remedy_lines(searches: Iterable[Document]) -> Iterator[str]:
    """Yield what would have to change at those that have denied in some searches, or were left out; each line once."""
    lines: dict[str, None] = {}
    for search in searches:
        for asked in search["order"]:
            found = dict.fromkeys(each for reason in asked["reasons"] for each in _remedies(reason))
            if not asked["reasons"] and asked["answer"] in _BY_CODE:
                found = {(_BY_CODE[asked["answer"]], asked["system"]): None}
            lines.update(dict.fromkeys(_joined(tuple(found))))
        for left in search["left_out"]:
            if left["code"] in _BY_CODE:
                lines[_BY_CODE[left["code"]].format(left["system"])] = None
    yield from lines


def _remedies(reason: Document) -> Iterator[Remedy]:
    below = [each for hop in reason.get("hops") or () for each in _remedies(hop)]
    yield from below
    own = _own_remedy(reason)
    if own and (not below or _is_of_itself(reason, below)):
        name = f"a system behind {reason['module']}" if _text(reason).startswith(WITHHELD) else reason["module"]
        yield own, name


def _own_remedy(reason: Document) -> str:
    """Return what would have to change at a system, by what it has said; empty if nothing there would help."""
    by_text = [what for part in _text(reason).split("; ") for begin, what in _BY_TEXT.items() if part.startswith(begin)]
    if by_text:
        return by_text[0]
    code = reason["code"]
    is_by_rule = reason.get("rule") or (_text(reason) and code == "refused_by_policy")
    is_refused = is_by_rule and code != "limit_reached" and not _text(reason).startswith(WITHHELD)
    return _POLICY if is_refused else _BY_CODE.get(code, "")


def _is_of_itself(reason: Document, below: Sequence[Remedy]) -> bool:
    """Whether a system that has asked others has said this of itself, and not only passed on what they said."""
    if reason.get("rule") or _text(reason):
        return True
    if reason["code"] == "no_capacity" and any(what in _SHOWS_NO_ROOM for what, _ in below):
        return False
    return not is_passed_on(reason)


def _joined(remedies: Sequence[Remedy]) -> Iterator[str]:
    """Yield a line for each thing that would have to change, with the first of the systems at which it would help."""
    for what in dict.fromkeys(what for what, _ in remedies):
        names = [name for each, name in remedies if each == what]
        more = len(names) - _SHOWN_NAMES
        shown = [*names[:_SHOWN_NAMES], *([f"{more} more"] if more > 0 else [])]
        yield what.format(" or ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))))


def _text(reason: Document) -> str:
    return str(reason.get("text") or "")
