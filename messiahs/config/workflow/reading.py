"""Reading a file of tasks: it is checked whole, and every problem has its line and column."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ruamel.yaml.comments import CommentedMap

from messiahs.config.array_numbers import ArrayNumbers
from messiahs.config.regular_files import read_regular
from messiahs.config.topology.problems import Place, Problems
from messiahs.config.topology.yaml_bounds import EntryBound
from messiahs.config.topology.yaml_places import Section, parse, refuse_unknown_keys, subsection
from messiahs.config.workflow.matrix import NO_MATRIX, Matrix, read_matrix
from messiahs.config.workflow.options import DEFAULT_KEYS, TASK_KEYS
from messiahs.config.workflow.order import Names, is_id, ordered, resolved
from messiahs.config.workflow.scalars import Scalars, shown
from messiahs.config.workflow.tasks import Draft, NamedOutput, TaskReader
from messiahs.core.interface.dependencies import When
from messiahs.core.interface.limits import WORKFLOW_LIMIT
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.output_names import why_never_left
from messiahs.errors import ClientError, WorkflowError

LIMIT_BYTES: Final = 4 * 1024 * 1024
_BOUND: Final = EntryBound(
    WORKFLOW_LIMIT, f"a file has at most {WORKFLOW_LIMIT} tasks: an `array` of up to a million counts as one"
)
_WANTED: Final = "a file of tasks is a mapping with the key `tasks`"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")
_OPTION_NAMES: Final = {When.STARTED: "after", When.ENDED: "after_any", When.OK: "after_ok", When.EACH: "after_each"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTask:
    """A task or an array of a file, with its options as the Python API has them, and what it waits for.

    `within` are places of earlier tasks of the workflow, and `outputs` what it takes of those: their places, the names,
    and where they are to be (may be empty). Ids of other tasks stand in the options.
    """

    name: str
    place: Place
    command: tuple[str, ...]
    options: Mapping[str, object]
    numbers: ArrayNumbers | None
    lines: tuple[str, ...]
    within: tuple[tuple[int, When], ...]
    outputs: tuple[tuple[int, str, str], ...] = ()

    @property
    def members(self) -> int:
        """The number of members of an array; 0 for a single task."""
        return len(self.items)

    @property
    def items(self) -> tuple[str, ...]:
        """What stands for `{}` in the members of an array."""
        return self.lines if self.numbers is None else tuple(map(str, self.numbers.numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """The tasks of a file, each after those for which it waits."""

    file: str
    tasks: tuple[WorkflowTask, ...]

    def error(self, refusals: Iterable[tuple[int, str]]) -> WorkflowError:
        """Return the error for tasks, by their places from 0, that are refused, with the lines of these tasks."""
        tasks = ((self.tasks[number], text) for number, text in refusals)
        lines = (f"{self.file}:{one.place.line}:{one.place.column}: task `{one.name}`: {text}" for one, text in tasks)
        return WorkflowError(tuple(dict.fromkeys(lines)))


class _Waits(NamedTuple):
    """What a task waits for: tasks of the file, and ids of others; and its inputs that are outputs of the former."""

    within: Mapping[tuple[int, When], Place]
    others: list[tuple[str, When]]
    taken: Mapping[str, NamedOutput]


def load_workflow(path: Path) -> Workflow:
    """Read and check a file of tasks; a `WorkflowError` lists every problem as `FILE:LINE:COLUMN: text`."""
    unreadable = f"the file of tasks {path} cannot be read"
    try:
        text = read_regular(path, limit_bytes=LIMIT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ClientError(f"{unreadable}: it is not UTF-8", code=ClientError.USAGE) from error
    except OSError as error:
        raise ClientError(f"{unreadable}: {error.strerror}", code=ClientError.USAGE) from error
    return read_workflow(text, str(path))


def read_workflow(text: str, file: str) -> Workflow:
    """Return the tasks described by a text; paths in it are relative to the folder of the file."""
    problems = Problems(file, error=WorkflowError)
    top = parse(text, problems, bound=_BOUND, wanted=_WANTED)
    refuse_unknown_keys(top, ("tasks", "defaults"), problems)
    scalars = Scalars(text, problems)
    defaults = subsection(top, "defaults", problems) if "defaults" in top else None
    if defaults is None:
        defaults = Section(CommentedMap(), top.place)
    refuse_unknown_keys(defaults, DEFAULT_KEYS, problems)
    folder = os.path.dirname(file)  # noqa: PTH120 - empty for the working folder
    reader = TaskReader(scalars=scalars, folder=folder, defaults=defaults)
    drafts, names = _read_drafts(top, reader)
    waits = [_resolve(draft, drafts, names, problems) for draft in drafts]
    order = ordered([one.within for one in waits], [draft.name for draft in drafts], problems)
    problems.raise_if_any()
    places = {number: place for place, number in enumerate(order)}
    tasks = (_finished(drafts[number], waits[number], names, places) for number in order)
    return Workflow(file=file, tasks=tuple(tasks))


def _read_drafts(top: Section, reader: TaskReader) -> tuple[list[Draft], Names]:
    """Return the tasks, one for each combination of a matrix, and their names."""
    problems, names = reader.scalars.problems, Names()
    drafts: list[Draft] = []
    found = _sections_in(top, reader.scalars)
    total = sum(matrix.count for _, _, matrix in found)
    if total > WORKFLOW_LIMIT:
        largest = max(found, key=lambda each: each[2].count)
        text = f"a file has at most {WORKFLOW_LIMIT} tasks, not {total}; an `array` of up to a million counts as one"
        problems.add(largest[1].place, text)
        return [], names
    for key, section, matrix in found:
        place = Section(top.values["tasks"], top.place).key_place(key)
        before, own = len(problems.found), list[int]()
        for combination in matrix.combinations():
            draft = reader.read(section, key, place=place, matrix=matrix, combination=combination)
            own.append(len(drafts))
            drafts.append(draft)
            _enter(draft, own[-1], names, problems)
            if len(problems.found) > before:
                # Those of the other combinations are the same.
                break
        if matrix.values:
            names.matrices[key] = own
    return drafts, names


def _sections_in(top: Section, scalars: Scalars) -> list[tuple[str, Section, Matrix]]:
    problems = scalars.problems
    if "tasks" not in top:
        problems.add(top.place, _WANTED)
        return []
    tasks = subsection(top, "tasks", problems)
    if tasks is None:
        return []
    if not tasks.values:
        problems.add(tasks.place, "`tasks` has no task")
    found = []
    for key in tasks.values:
        if not isinstance(key, str):
            problems.add(tasks.key_place(key), f"the name of a task is a text, not {shown(key)}")
        elif (section := subsection(tasks, key, problems)) is not None:
            refuse_unknown_keys(section, TASK_KEYS, problems)
            given = subsection(section, "matrix", problems) if "matrix" in section else None
            found.append((str(key), section, NO_MATRIX if given is None else read_matrix(given, scalars)))
    return found


def _enter(draft: Draft, number: int, names: Names, problems: Problems) -> None:
    if not _NAME.fullmatch(draft.name):
        text = f"`{draft.name}` is no name of a task: letters, digits, `_`, `-` and `.`, a letter first, at most 200"
        problems.add(draft.place, text)
    elif draft.name in names.tasks or draft.name in names.matrices:
        problems.add(draft.place, f"there is another task `{draft.name}` in this file")
    names.tasks[draft.name] = number


def _resolve(draft: Draft, drafts: list[Draft], names: Names, problems: Problems) -> _Waits:
    taken = _outputs_within(draft, drafts, names, problems)
    # An id is one of a task that the module knows.
    unknown = (each for each in draft.outputs_of if each.text not in taken and not is_id(each.of.text))
    within, others = resolved((*draft.references, *(each.of for each in (*taken.values(), *unknown))), names, problems)
    for (on, when), place in within.items():
        other = drafts[on]
        if when is When.EACH and (not draft.members or draft.members != other.members):
            problems.add(place, _why_not_each(draft, other))
    return _Waits(within=within, others=others, taken=taken)


def _why_not_each(draft: Draft, other: Draft) -> str:
    single = [f"`{each.name}`" for each in (draft, other) if not each.members]
    if single:
        what = f"{single[0]} is a single task" if len(single) == 1 else f"{' and '.join(single)} are single tasks"
        return f"`after-each` joins two arrays member by member, and {what}: write `after-ok`"
    text = f"`{draft.name}` has {draft.members} and `{other.name}` {other.members}"
    return f"`after-each` needs two arrays of as many members: {text}"


def _outputs_within(draft: Draft, drafts: list[Draft], names: Names, problems: Problems) -> Mapping[str, NamedOutput]:
    """Return which inputs of a task are outputs of tasks of the file, by their texts; a wrong one is a problem."""
    taken: dict[str, NamedOutput] = {}
    for each in draft.outputs_of:
        found = names.find(each.of.text)
        if not found:
            continue
        taken[each.text] = each
        if why := _why_not_taken(each, [drafts[on] for on in found], members=draft.members):
            problems.add(each.of.place, f"`{each.text}`: {why}")
    return taken


def _why_not_taken(output: NamedOutput, found: Sequence[Draft], *, members: int) -> str:
    other, declared = found[0], found[0].options.get("outputs", ())
    assert isinstance(declared, Sequence), "outputs are a list"
    if len(found) > 1:
        return f"`{output.of.text}` is {len(found)} tasks: name one, such as `@{other.name}/{output.name}`"
    if other.members:
        text = f"`{other.name}` is an array, and a task of the same file takes outputs of single tasks"
        return f"{text}: make it a `matrix`, and name each of its tasks"
    if not output.name:
        return f"it names no output, such as `@{other.name}/NAME`"
    if members and PLACEHOLDER in f"{output.name}{output.to}":
        return "`{}` stands for no item here, since the other task has not ended: make both a `matrix`"
    return why_never_left(declared, output.name, of=f"`{other.name}`")


def _finished(draft: Draft, waits: _Waits, names: Names, places: Mapping[int, int]) -> WorkflowTask:
    after: dict[str, list[str]] = {}
    for text, when in waits.others:
        after.setdefault(_OPTION_NAMES[when], []).append(text)
    options = {**draft.options, **after}
    if waits.taken:
        inputs = draft.options["inputs"]
        assert isinstance(inputs, list), "inputs are a list"
        options["inputs"] = [each for each in inputs if each not in waits.taken]
    return WorkflowTask(
        name=draft.name,
        place=draft.place,
        command=draft.command,
        options=options,
        numbers=draft.numbers,
        lines=draft.lines,
        within=tuple((places[on], when) for on, when in waits.within),
        outputs=tuple((places[names.find(each.of.text)[0]], each.name, each.to) for each in waits.taken.values()),
    )
