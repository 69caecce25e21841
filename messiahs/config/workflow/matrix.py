"""Matrices: one task for each combination of values, which stand for `{variable}` in the texts of the task."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Final

from ruamel.yaml.comments import CommentedSeq

from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section
from messiahs.config.workflow.scalars import Scalars, all_there, items, shown

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class Matrix:
    """The variables of a task with their values; without any there is one combination."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self.values = values
        names = "|".join(map(re.escape, values))
        # In a shell, ${x} is something else.
        self._marks = re.compile(rf"(?<!\$)\{{({names})\}}") if values else None

    @property
    def count(self) -> int:
        """The number of combinations."""
        return prod(map(len, self.values.values()))

    def combinations(self) -> Iterator[dict[str, str]]:
        """Yield the combinations, the values of the last variable first."""
        for chosen in product(*self.values.values()):
            yield dict(zip(self.values, chosen, strict=True))

    def filled(self, text: str, combination: Mapping[str, str]) -> str:
        """Return a text with the values in the place of the variables."""
        if self._marks is None or "{" not in text:
            return text
        return self._marks.sub(lambda found: combination[found[1]], text)

    def filled_name(self, name: str, combination: Mapping[str, str]) -> str:
        """Return a name with the values, in which other characters than those of names become `-`."""
        plain = {variable: _NOT_IN_NAMES.sub("-", value) for variable, value in combination.items()}
        return self.filled(name, plain)

    def name_of(self, key: str, combination: Mapping[str, str]) -> str:
        """Return the name of a combination: the values that do not stand in the key are at its end."""
        missing = [variable for variable in self.values if f"{{{variable}}}" not in key]
        return self.filled_name("-".join((key, *(f"{{{variable}}}" for variable in missing))), combination)


NO_MATRIX: Final = Matrix({})


def read_matrix(section: Section, scalars: Scalars) -> Matrix:
    """Return the matrix that a mapping describes; problems are noted."""
    values: dict[str, list[str]] = {}
    for name, given in section.values.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            text = f"`{name}` is no variable of a matrix: letters, digits and `_`, no digit first"
            scalars.problems.add(section.key_place(name), text)
        elif (found := _read_values(section, name, given, scalars)) is not None:
            values[name] = found
    return Matrix(values)


def _read_values(section: Section, name: str, given: object, scalars: Scalars) -> list[str] | None:
    problems: Problems = scalars.problems
    if not isinstance(given, CommentedSeq) or not given:
        got = "an empty list" if isinstance(given, CommentedSeq) else shown(given)
        problems.add(section.key_place(name), f"`{name}` needs a list of values, such as [1, 2], not {got}")
        return None
    what = f"each value of `{name}`"
    found = [(scalars.text(each, place, what=what), place) for each, place in items(given, section.value_place(name))]
    if not all_there(found):
        return None
    texts: dict[str, None] = {}
    for text, place in found:
        if text in texts:
            problems.add(place, f"`{name}` has the value `{text}` twice")
            return None
        if text is not None:
            texts[text] = None
    return list(texts)
