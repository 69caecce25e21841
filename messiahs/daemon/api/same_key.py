"""What differs between a submit and the one that is stored under its key."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from messiahs.core.interface.dependencies import Dependency
from messiahs.core.interface.events import Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import TaskId
from messiahs.core.model.input_size import with_input_size
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.trace_context import without_context
from messiahs.core.origin.array_members import item_of

_SHOWN_CHARACTERS = 200


def difference(row: SubmissionRow, submitted: Submitted, /, *, within: Iterable[Dependency] = ()) -> str:
    """Return how a submit differs from the one that is stored under its key; empty if they are equal.

    `within` are its dependencies on others of its workflow. Deadlines are not compared, because both count from the
    first submit, and neither is the trace of the submitter.
    """
    now = submitted.command
    after = (*within, *(each.dependency for each in submitted.after))
    gone = _gone_since(row, after)
    row, is_other = _without(row, frozenset(one.to for each in gone for one in each.outputs))
    before, after = row.command, tuple(each for each in after if each not in gone)
    if before.argv != now.argv:
        return f"whose command is `{_shown(before.argv)}`, and this one's is `{_shown(now.argv)}`"
    ended = _ended_since(row, after)
    pairs = (
        ("environment", without_context(before.env), without_context(now.env)),
        ("inputs", row.member_inputs, submitted.member_inputs),
        ("inputs", is_other, False),
        ("inputs", *_inputs(row, now, {one.to for each in ended for one in each.outputs})),
        ("outputs", before.outputs, now.outputs),
        ("`--cwd`", before.cwd, now.cwd),
        ("standard input", before.takes_stdin, now.takes_stdin),
        ("terminal", before.terminal, now.terminal),
        ("members", (row.members, row.items, row.at_once), (submitted.members, submitted.items, submitted.at_once)),
        ("needs or stated attributes", _stated(row.tdv), _stated(submitted.tdv)),
        ("requirement", row.requirement, submitted.requirement),
        ("name", row.name, submitted.name),
        ("`--retries`", row.retries, submitted.retries),
        ("`--no-wait`", row.waits, submitted.waits),
        ("`--notify`", row.notification, submitted.notification),
        (
            "dependencies",
            sorted(_condition(each) for each in row.after if each not in ended),
            sorted(map(_condition, after)),
        ),
    )
    others = dict.fromkeys(what for what, stored, asked in pairs if stored != asked)
    return f"whose command is `{_shown(before.argv)}`, with other {', '.join(others)}" if others else ""


def _stated(tdv: TDV) -> TDV:
    """Return what the user states of tasks; earlier releases stored no size of their inputs."""
    return with_input_size(tdv, 0)


def _ended_since(row: SubmissionRow, after: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return what was stated of tasks that have ended since: then their outputs are inputs from the beginning."""
    stated = [_condition(each) for each in after]
    return tuple(each for each in row.after if each.outputs and _condition(each) not in stated)


def _gone_since(row: SubmissionRow, after: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return what is stated now of tasks that had ended then: their outputs were inputs from the beginning.

    Clients state that of tasks that are gone.
    """
    stored = [_condition(each) for each in row.after]
    return tuple(each for each in after if each.outputs and _condition(each) not in stored)


def _without(row: SubmissionRow, stated: frozenset[str]) -> tuple[SubmissionRow, bool]:
    """Return a submission without its inputs at stated places, and whether it has none at one of them.

    These came from tasks that are gone, so what they were cannot be compared. In a place, `{}` stands for the item of a
    member; one without it may also be that of an input of all members.
    """
    if not stated:
        return row, False
    own = len(row.command.inputs) - row.taken
    given, taken = row.command.inputs[:own], row.command.inputs[own:]
    shared, rest = _parted(given, dict(zip(stated, stated, strict=True)))
    found, members = [], []
    for member, files in enumerate(row.member_inputs, 1):
        there, others = _parted(files, {_filled(place, item_of(row, member)): place for place in stated})
        found.append(there)
        members.append(others)
    there = shared.union(set[str].intersection(*found) if found else ())
    command = replace(row.command, inputs=(*rest, *taken))
    return replace(row, command=command, member_inputs=tuple(members) if any(members) else ()), not stated <= there


def _parted(files: Iterable[InputFile], stated: Mapping[str, str]) -> tuple[set[str], tuple[InputFile, ...]]:
    """Return which of the stated places have a file, by the places of these files, and the files at none of them."""
    places = set(stated)
    at = [(one, _place_of(one, places)) for one in files]
    return {stated[place] for _, place in at if place}, tuple(one for one, place in at if not place)


def _inputs(row: SubmissionRow, now: Command, places: set[str]) -> tuple[object, object]:
    """Return the inputs of both to be compared; at `places`, this one has outputs that were only to be taken before.

    What was not taken yet is not compared.
    """
    own = len(row.command.inputs) - row.taken
    given, taken = row.command.inputs[:own], row.command.inputs[own:]
    brought = {one.name: one for one in now.inputs if _place_of(one, places)}
    if {_place_of(one, places) for one in brought.values()} != places:
        return given, now.inputs
    before = {one.name: one for one in taken if _place_of(one, places)} if row.taken else brought
    return (given, before), (tuple(one for one in now.inputs if one.name not in brought), brought)


def _filled(place: str, item: str | None) -> str:
    """Return a place of one member, as clients write it."""
    if item is None or PLACEHOLDER not in place:
        return place
    return "/".join(part for part in place.replace(PLACEHOLDER, item).split("/") if part not in {"", "."})


def _place_of(one: InputFile, places: set[str]) -> str:
    """Return where among some places, files or folders, an input lies; empty if at none."""
    parts = one.name.split("/") if places else []
    above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return next((place for place in above if place in places), "")


def _condition(dependency: Dependency) -> tuple[TaskId, str, list[tuple[str, str]]]:
    return dependency.on, dependency.when, [(one.name, one.to) for one in dependency.outputs]


def _shown(argv: tuple[str, ...]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
