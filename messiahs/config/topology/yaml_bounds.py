"""Bounds on the YAML of people: nesting, entries, digits of numbers. Otherwise texts cost much, or fail late."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.scanner import RoundTripScanner

NESTING_LIMIT: Final = 32
"""Maximum number of brackets and braces in one another, and of indents."""
NUMBER_LIMIT: Final = 100
"""Maximum number of characters of an integer: of 64 bits, and some more. Python converts no very long ones."""


_SECOND_LEVEL: Final = 2
"""Of the entries of a mapping at a top key."""


@dataclass(frozen=True, slots=True)
class EntryBound:
    """How many entries the mapping at each top key may have, and the text for more."""

    entries: int
    text: str


def bounded_yaml(bound: EntryBound) -> YAML:
    """Return a parser that raises a `MarkedYAMLError` at what exceeds a bound, before it reads on."""
    yaml = YAML(typ="rt")
    yaml.Scanner = partial(_Scanner, bound)
    yaml.Constructor = _Constructor
    return yaml


class _Scanner(RoundTripScanner):
    """Counts while it looks for tokens: the parser needs many of these before it begins with any of them."""

    def __init__(self, bound: EntryBound, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - the library's own types
        self._bound, self._entries = bound, 0
        super().__init__(*arguments, **more)

    def fetch_value(self) -> None:
        """Begin the value of an entry."""
        super().fetch_value()
        level = len(self.indents) + self.flow_level
        if level < _SECOND_LEVEL:
            self._entries = 0
        elif level == _SECOND_LEVEL:
            self._entries += 1
            if self._entries > self._bound.entries:
                raise MarkedYAMLError(problem=self._bound.text, problem_mark=self.reader.get_mark())

    def fetch_flow_collection_start(self, token: Any, to_push: str) -> None:  # noqa: ANN401 - the library's own types
        """Begin a list or a mapping in brackets or braces."""
        super().fetch_flow_collection_start(token, to_push)
        self._check(self.flow_level)

    def add_indent(self, column: int) -> bool:
        """Begin a list or a mapping that is indented further."""
        is_new = bool(super().add_indent(column))
        self._check(len(self.indents))
        return is_new

    def _check(self, levels: int) -> None:
        if levels > NESTING_LIMIT:
            text = f"lists and mappings are nested more than {NESTING_LIMIT} deep"
            raise MarkedYAMLError(problem=text, problem_mark=self.reader.get_mark())


class _Constructor(RoundTripConstructor):
    def construct_yaml_int(self, node: Any) -> Any:  # noqa: ANN401 - the library's own types
        """Return an integer."""
        if len(node.value) > NUMBER_LIMIT:
            text = f"a number has at most {NUMBER_LIMIT} characters: put a text into quotes"
            raise MarkedYAMLError(problem=text, problem_mark=node.start_mark)
        return super().construct_yaml_int(node)


_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)
