"""Read a task from the output of `messiahs status ID --json`."""

import json
from dataclasses import dataclass, field
from typing import Any

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Value
from messiahs.errors import ClientError, PredicateError
from messiahs.language.predicate.predicates import ParsedPredicate, parse_predicate

_COMMAND = "`messiahs status ID --json`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Attributes stated for a task or another scope, without `$`, and the requirement of a task."""

    tdv: dict[str, Value] = field(default_factory=dict)
    requirement: ParsedPredicate = field(default_factory=lambda: parse_predicate(""))


def is_document(text: str) -> bool:
    """Return whether a text is meant as JSON; statements begin with a name."""
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def task_in(text: str, /, *, file: str) -> Statements:
    """Return the only task in a document; raises ClientError for any other document."""
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ClientError(f"{file}: not valid JSON: {error}") from error
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ClientError(f"{file}: this JSON is not the output of {_COMMAND}")
    if len(tasks) != 1:
        found = f"it contains {len(tasks)} tasks" if tasks else "it contains no task"
        raise ClientError(f"{file}: {found}; write it with {_COMMAND} for one ID")
    return _task(tasks[0], file)


def _task(task: dict[str, Any], file: str) -> Statements:
    name = task.get("id")
    if "members" in task:
        raise ClientError(f"{file}: {name} is an array: name one of its members, such as {name}.1")
    tdv, requirement = task.get("tdv"), task.get("requirement")
    if not isinstance(tdv, dict) or not isinstance(requirement, str):
        raise ClientError(f"{file}: {name} has no `tdv` or no `requirement`")
    wrong = [f"{key} is {value!r}" for key, value in tdv.items() if not _is_value(value)]
    if wrong:
        raise ClientError(f"{file}: `tdv`: {', '.join(wrong)}: values are strings and 64-bit integers")
    try:
        return Statements(tdv=tdv, requirement=parse_predicate(requirement))
    except PredicateError as error:
        raise ClientError(f"{file}: `requirement`: {error}") from error


def _is_value(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return INTEGER_LOWEST <= value <= INTEGER_HIGHEST
    return isinstance(value, str)
