"""One task of a file, for one combination of its matrix: each key is read, and every problem is at its place."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from glob import has_magic, iglob
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.array_numbers import ArrayNumbers, array_numbers
from messiahs.config.input_names import split_source
from messiahs.config.task_names import check_folder, check_variable, checked_name
from messiahs.config.task_values import QUANTITIES, RANGES, range_text
from messiahs.config.text_files import lines_of, variables_of
from messiahs.config.topology.problems import Place
from messiahs.config.topology.yaml_places import Section
from messiahs.config.workflow.matrix import Matrix
from messiahs.config.workflow.options import CONDITIONS, JOINED_KINDS, OPTIONS, Kind, Option
from messiahs.config.workflow.order import Reference
from messiahs.config.workflow.scalars import Scalars, shown
from messiahs.core.interface.dependencies import When
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.attributes import Value
from messiahs.core.model.webhooks import problem_of
from messiahs.errors import MessiahsError
from messiahs.language.predicate.predicates import predicate_parser

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_NAMED_OUTPUT: Final = re.compile(r"@([^/:]+)(/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOutput:
    """An input `@TASK/NAME[:DST]`: the task, by its name in the file or its id, and the rest."""

    of: Reference
    name: str
    to: str
    text: str


@dataclass(slots=True, kw_only=True)
class Draft:
    """What is read of a task (mutable): `options` are those of the Python API, `references` what it waits for."""

    name: str
    place: Place
    command: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    numbers: ArrayNumbers | None = None
    lines: tuple[str, ...] = ()
    outputs_of: list[NamedOutput] = field(default_factory=list)

    @property
    def members(self) -> int:
        """The number of members of an array; 0 for a single task."""
        return len(self.lines) if self.numbers is None else len(self.numbers.numbers)


@dataclass(slots=True, kw_only=True)
class TaskReader:
    """Reads tasks; paths are relative to `folder` (mutable: it remembers which files are there)."""

    scalars: Scalars
    folder: str
    defaults: Section
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(
        self, section: Section, key: str, *, place: Place, matrix: Matrix, combination: Mapping[str, str]
    ) -> Draft:
        """Return the task for a combination; its problems are noted."""
        draft = Draft(name=matrix.name_of(key, combination), place=place)
        fill = _Fill(matrix, combination)
        if "command" in section:
            self._read_command(draft, section, fill)
        else:
            self._note(place, f"`{draft.name}` has no command")
        for name, option in OPTIONS.items():
            sections = [one for one in (self.defaults, section) if name in one]
            for one in sections if option.kind in JOINED_KINDS else sections[-1:]:
                self._read_option(draft, one, name, option, fill)
        if draft.numbers is not None and draft.lines:
            self._note(section.key_place("each-line"), "`array` and `each-line` cannot be combined")
        draft.options.setdefault("name", draft.name)
        return draft

    def _note(self, place: Place, text: str) -> None:
        self.scalars.problems.add(place, text)

    def _read_command(self, draft: Draft, section: Section, fill: "_Fill") -> None:
        value, place = section.values["command"], section.value_place("command")
        if isinstance(value, str):
            draft.command = ("sh", "-c", fill(str(value)))
        elif isinstance(value, CommentedSeq) and value:
            words = self.scalars.texts(value, place, what="the words of `command`") or []
            draft.command = tuple(fill(word) for word, _ in words)
        else:
            text = f"`command` is a list of a program and its words, or a text for `sh -c`, not {shown(value)}"
            self._note(section.key_place("command"), text)

    def _read_option(self, draft: Draft, section: Section, key: str, option: Option, fill: "_Fill") -> None:
        value, place = section.values[key], section.value_place(key)
        match option.kind:
            case Kind.TASKS:
                texts = self.scalars.texts(value, place, what=f"the tasks of `{key}`") or []
                draft.references += (
                    Reference(text=fill.name(text), when=CONDITIONS[key], place=where) for text, where in texts
                )
            case Kind.INPUTS | Kind.TEXTS:
                texts = self.scalars.texts(value, place, what=f"the texts of `{key}`") or []
                if option.kind is Kind.INPUTS:
                    draft.options[option.name] = [self._input(fill.input(text), where, draft) for text, where in texts]
                else:
                    filled = [(fill(text), where) for text, where in texts]
                    draft.options[option.name] = [text for text, _ in filled]
                    for text, where in filled if key in _CHECKS else ():
                        self._check(key, text, where)
            case Kind.VARIABLES:
                texts = self.scalars.texts(value, place, what=f"the files of `{key}`") or []
                for text, where in texts:
                    draft.options["env"] = {**_mapping(draft, "env"), **self._variables(fill(text), where)}
            case Kind.TEXTS_BY_NAME | Kind.VALUES_BY_NAME | Kind.AMOUNTS_BY_NAME:
                found = self._by_name(section, key, option.kind, fill)
                draft.options[option.name] = {**_mapping(draft, option.name), **found}
            case Kind.FLAG:
                if isinstance(value, bool):
                    draft.options[option.name] = not value
                else:
                    self._note(place, f"`{key}` is true or false, not {shown(value)}")
            case _:
                self._read_single(draft, key, value, place=place, fill=fill)

    def _read_single(self, draft: Draft, key: str, value: object, *, place: Place, fill: "_Fill") -> None:
        option = OPTIONS[key]
        given = self.scalars.text(value, place, what=f"`{key}`")
        if given is None:
            return
        text = fill(given)
        try:
            match option.kind:
                case Kind.QUANTITY:
                    draft.options[option.name] = QUANTITIES[key](text)
                case Kind.WHOLE:
                    draft.options[option.name] = _whole(text, RANGES[key])
                case Kind.NUMBERS:
                    draft.numbers = array_numbers(text)
                case Kind.LINES:
                    draft.lines = lines_of(self._path(text))
                case Kind.PATH:
                    draft.options[option.name] = self._path(text)
                    self._check_there(text, place, what=key)
                case Kind.NAME_OR_PATH:
                    draft.options[option.name] = self._path(text) if "/" in text else text
                case _:
                    draft.options[option.name] = text
                    if key in _CHECKS:
                        self._check(key, text, place)
        except MessiahsError as error:
            self._note(place, f"`{key}`: {error}")

    def _check(self, key: str, text: str, place: Place) -> None:
        """Note what is wrong with a value; where `{}` stands, it is checked when the members are known."""
        try:
            if key not in _OF_MEMBERS or PLACEHOLDER not in text:
                _CHECKS[key](text)
        except MessiahsError as error:
            named = "" if str(error).startswith(f"`{key}`") else f"`{key}`: "
            self._note(place, f"{named}{error}")

    def _by_name(self, section: Section, key: str, kind: Kind, fill: "_Fill") -> dict[str, Value]:
        value = section.values[key]
        if not isinstance(value, CommentedMap):
            self._note(section.key_place(key), f"`{key}` has values by their names, as in `{key}: {{NAME: 1}}`")
            return {}
        inner, found = Section(value, section.value_place(key)), dict[str, Value]()
        for name, each in value.items():
            place = inner.value_place(name)
            text = self.scalars.text(each, place, what=f"`{name}` of `{key}`")
            if not isinstance(name, str):
                self._note(inner.key_place(name), f"a name in `{key}` is a text, not {shown(name)}")
            elif text is not None:
                if kind is Kind.TEXTS_BY_NAME:
                    self._check(key, name, inner.key_place(name))
                try:
                    found[name] = _value(each, text, fill(text), kind)
                except MessiahsError as error:
                    self._note(place, f"`{name}` of `{key}`: {error}")
        return found

    def _variables(self, text: str, place: Place) -> dict[str, str]:
        try:
            return variables_of(self._path(text))
        except MessiahsError as error:
            self._note(place, f"`env-file`: {error}")
            return {}

    def _path(self, text: str) -> str:
        # Elsewhere `-` stands for standard input. A slash at the end has a meaning.
        return os.path.join(self.folder, text if text != "-" else "./-")  # noqa: PTH118

    def _input(self, text: str, place: Place, draft: Draft) -> str:
        named = _NAMED_OUTPUT.fullmatch(text)
        if named is not None and not Path(self._path(text)).exists():
            name, _, to = (named[2] or "").partition(":")
            of = Reference(text=named[1], when=When.OK, place=place)
            draft.outputs_of.append(NamedOutput(of=of, name=name.strip("/"), to=to, text=text))
            return text
        self._check_there(text, place, what="input")
        return self._path(text)

    def _check_there(self, text: str, place: Place, *, what: str) -> None:
        """Note a file that is not there; where `{}` stands, it is looked for when the members are known."""
        if PLACEHOLDER in text:
            return
        if (what, text) not in self._known:
            path = split_source(self._path(text))[0] if what == "input" else self._path(text)
            try:
                is_there = os.path.lexists(path) or (has_magic(path) and any(True for _ in iglob(path)))  # noqa: PTH207
            except ValueError:
                is_there = False
            self._known[what, text] = "" if is_there else f"`{what}`: there is no `{path}`"
        if problem := self._known[what, text]:
            self._note(place, problem)


@dataclass(frozen=True, slots=True)
class _Fill:
    """Puts the values of a combination into texts."""

    matrix: Matrix
    combination: Mapping[str, str]

    def __call__(self, text: str) -> str:
        return self.matrix.filled(text, self.combination)

    def input(self, text: str) -> str:
        """Return an input with the values; a task that it names gets them as they stand in names."""
        named = _NAMED_OUTPUT.fullmatch(text)
        return self(text) if named is None else f"@{self.name(named[1])}{self(named[2] or '')}"

    def name(self, text: str) -> str:
        """Return the name of a task with the values as they stand in names; an id stays as it is."""
        return self.matrix.filled_name(text, self.combination)


def _mapping(draft: Draft, name: str) -> Mapping[str, object]:
    found = draft.options.get(name, {})
    assert isinstance(found, dict), "options with names are mappings"
    return found


def _value(given: object, written: str, text: str, kind: Kind) -> Value:
    """Return the value under a name: a text that becomes a whole number by the matrix is one."""
    if kind is Kind.TEXTS_BY_NAME:
        return text
    if kind is Kind.AMOUNTS_BY_NAME:
        return _whole(text, RANGES["gpus"])
    if isinstance(given, int):
        return int(given)
    return int(text) if text != written and _WHOLE.fullmatch(text) else text


def _check_predicate(text: str) -> None:
    found = predicate_parser(text)
    if isinstance(found, BadPredicate):
        raise MessiahsError(f"`{text}` is not a predicate: {found.text}")


def _check_notify(text: str) -> None:
    if problem := problem_of(text):
        raise MessiahsError(problem)


def _whole(text: str, within: tuple[int, int]) -> int:
    lowest, highest = within
    if not _WHOLE.fullmatch(text) or not lowest <= int(text) <= highest:
        raise MessiahsError(f"`{text}` is not a whole number {range_text(within)}")
    return int(text)


_CHECKS: Final[Mapping[str, Callable[[str], object]]] = MappingProxyType(
    {
        "output": checked_name,
        "env": check_variable,
        "require": _check_predicate,
        "cwd": check_folder,
        "notify": _check_notify,
    }
)
"""What refuses a value that no task can have, by its key."""
_OF_MEMBERS: Final = ("output", "cwd")
"""Those in which `{}` stands for the item of a member."""
