"""The YAML of a topology or a workflow, with the place of every key and value.

Keys and values that are unknown or not built yet are errors: if they were ignored, their author would believe that
they have an effect.
"""

from dataclasses import dataclass

from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.parser import ParserError
from ruamel.yaml.scanner import ScannerError

from messiahs.config.topology.problems import Place, Problems, nearest
from messiahs.config.topology.yaml_bounds import EntryBound, bounded_yaml

_REMEDIES = (
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values", "indent this line like its neighbors, or put a value that contains `: ` into quotes"),
    ("cannot start any token", "put the value into quotes"),
    ("", "look for a bracket, a quote, a comma or a `:` that is missing here or above"),
)
"""Remedies for malformed text, by the parser's message."""


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping of the file, with the places of its keys and values."""

    values: CommentedMap
    place: Place

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def key_place(self, key: object) -> Place:
        """Return the place of a key; for a key merged in from elsewhere, the place of the mapping."""
        known = self.values.lc.data or {}
        return Place(known[key][0] + 1, known[key][1] + 1) if key in known else self.place

    def value_place(self, key: object) -> Place:
        """Return the place of a key's value."""
        known = self.values.lc.data or {}
        return Place(known[key][2] + 1, known[key][3] + 1) if key in known else self.place


_TOPOLOGY = "a topology is a mapping with the keys `version`, `federation` and `systems`"


def parse(text: str, problems: Problems, *, bound: EntryBound, wanted: str = _TOPOLOGY) -> Section:
    """Return the whole document; raises the error of `problems` if it is not YAML, or not the mapping `wanted`.

    One with more entries than `bound` is read no further.
    """
    start = Place(1, 1)
    try:
        _refuse_nested_aliases(text, problems, bound)
        document = bounded_yaml(bound).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(mark.line + 1, mark.column + 1) if mark is not None else start
        problems.add(place, _text_of(error))
    except TypeError:
        problems.add(start, "this is not YAML: a key is a mapping or a list; look for `{{` or `{[`")
    except (YAMLError, ValueError, RecursionError) as error:
        problems.add(start, f"this is not YAML: {str(error).splitlines()[0]}")
    else:
        if isinstance(document, CommentedMap):
            return Section(document, start)
        problems.add(start, wanted)
    # Nothing more can be reported about malformed text.
    problems.raise_if_any()
    raise AssertionError("unreachable: a problem was added above")


def _refuse_nested_aliases(text: str, problems: Problems, bound: EntryBound) -> None:
    """Raise the error of `problems` for values that refer to themselves, or to values that refer to more, and so on.

    A few hundred bytes could stand for more than the memory holds.
    """
    if "*" not in text:
        return
    anchored: list[bool] = []
    for event in bounded_yaml(bound).parse(text):
        if isinstance(event, CollectionStartEvent):
            anchored.append(event.anchor is not None)
        elif isinstance(event, CollectionEndEvent):
            anchored.pop()
        elif isinstance(event, AliasEvent) and any(anchored):
            place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
            problems.add(place, f"`*{event.anchor}` stands in a value that has a name (`&NAME`) itself: write it out")
    problems.raise_if_any()


def _text_of(error: MarkedYAMLError) -> str:
    """Return in one line what is wrong, with a remedy for malformed text."""
    problem: str = (error.problem or "it is malformed").splitlines()[0]
    if not isinstance(error, ScannerError | ParserError):
        return problem
    remedy = next(remedy for sign, remedy in _REMEDIES if sign in problem)
    begun, found = error.context_mark, error.problem_mark
    if begun is not None and found is not None and begun.line < found.line:
        problem = f"{problem} {error.context} from line {begun.line + 1}"
    return f"this is not YAML: {problem}; {remedy}"


def refuse_unknown_keys(section: Section, known: tuple[str, ...], problems: Problems, /) -> None:
    """Report every other key as a problem, with the nearest known key."""
    for key in section.values:
        if key in known:
            continue
        problems.add(section.key_place(key), f"unknown key `{key}`{nearest(str(key), known)}")


def subsection(section: Section, key: str, problems: Problems, /) -> Section | None:
    """Return the mapping under a key; None, with a problem, if there is something else."""
    value, place = section.values[key], section.value_place(key)
    if isinstance(value, CommentedMap):
        return Section(value, place)
    shown = "nothing" if value is None else f"`{value}`"
    problems.add(section.key_place(key), f"`{key}` needs a mapping (`{{}}` if there is nothing to say), not {shown}")
    return None
