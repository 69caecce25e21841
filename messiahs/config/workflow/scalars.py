"""Values of a file of tasks, with their places: texts, numbers as they are written, and lists of them."""

import re
from collections.abc import Iterator
from typing import Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.topology.problems import Place, Problems

_NUMBER: Final = re.compile(r"[-+.0-9A-Za-z_]+")
_SHOWN: Final = 60


class Scalars:
    """Reads values of one file, and notes problems at their places."""

    def __init__(self, text: str, problems: Problems) -> None:
        self._lines, self.problems = text.split("\n"), problems

    def text(self, value: object, place: Place, *, what: str) -> str | None:
        """Return a text, or a number as it is written in the file; None, with a problem, for anything else."""
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._written(value, place)
        self.problems.add(place, f"{what} is a text, not {shown(value)}{_remedy(value)}")
        return None

    def texts(self, value: object, place: Place, *, what: str) -> list[tuple[str, Place]] | None:
        """Return the texts of a list, or a single one, with their places; None if there is a problem."""
        if not isinstance(value, CommentedSeq):
            text = self.text(value, place, what=f"{what}, or a list of such,")
            return None if text is None else [(text, place)]
        found = [(self.text(each, where, what=f"each of {what}"), where) for each, where in items(value, place)]
        return [(text, where) for text, where in found if text is not None] if all_there(found) else None

    def _written(self, value: float, place: Place) -> str:
        line = self._lines[place.line - 1] if place.line <= len(self._lines) else ""
        found = _NUMBER.match(line, place.column - 1)
        # Behind an alias stands something else.
        return found[0] if found is not None and _is_same(found[0], value) else str(value)


def items(values: CommentedSeq, place: Place) -> Iterator[tuple[object, Place]]:
    """Yield the values of a list with their places."""
    known = values.lc.data or {}
    for number, each in enumerate(values):
        yield each, Place(known[number][0] + 1, known[number][1] + 1) if number in known else place


def all_there(found: list[tuple[str | None, Place]]) -> bool:
    """Return whether no value was refused."""
    return all(text is not None for text, _ in found)


def shown(value: object) -> str:
    """Return a value for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, CommentedMap):
        return "a mapping"
    if isinstance(value, CommentedSeq):
        return "a list"
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    return f"`{text[:_SHOWN]}`"


def _is_same(written: str, value: float) -> bool:
    try:
        return float(written.replace("_", "")) == value
    except ValueError:
        return False


def _remedy(value: object) -> str:
    return "" if value is None or isinstance(value, CommentedMap | CommentedSeq) else ": put it into quotes"
