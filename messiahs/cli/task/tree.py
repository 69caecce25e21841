"""Tasks in the order in which they wait for each other, for people: each below one for which it waits or waited."""

from collections.abc import Sequence

from messiahs.client.connection import Document
from messiahs.client.locating import array_of

_DEEPEST = 8
"""Tasks that are further below are indented as these, because a chain may be longer than a line."""


def tree_of(tasks: Sequence[Document]) -> list[tuple[Document, str]]:
    """Return tasks with their indentation; one that names several others is below the last one of these.

    The array stands for a member that is not shown, and the last member for an array that is not.
    """
    places: dict[str, int] = {}
    for place, document in enumerate(tasks):
        places |= dict.fromkeys((document["id"], array_of(document["id"])), place)
    below: dict[str, list[Document]] = {}
    roots: list[Document] = []
    for document in tasks:
        found = (places.get(each["on"], places.get(array_of(each["on"]))) for each in document.get("after", ()))
        if named := [place for place in found if place is not None]:
            below.setdefault(tasks[max(named)]["id"], []).append(document)
        else:
            roots.append(document)
    shown: list[tuple[Document, str]] = []
    left = [(document, 0) for document in reversed(roots)]
    while left:
        document, depth = left.pop()
        shown.append((document, "  " * min(depth, _DEEPEST)))
        left.extend((each, depth + 1) for each in reversed(below.pop(document["id"], ())))
    return shown
