"""From what `messiahs status ID --json` printed of a task to what the task says of itself."""

import json
from dataclasses import dataclass, field
from typing import Any

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Value
from messiahs.errors import ClientError, PredicateError
from messiahs.language.predicate.predicates import ParsedPredicate, parse_predicate

_COMMAND = "`messiahs status ID --json`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidByTask:
    """What a task says of itself, without `$`, and what it requires of its machine."""

    tdv: dict[str, Value] = field(default_factory=dict)
    requirement: ParsedPredicate = field(default_factory=lambda: parse_predicate(""))


def is_document(text: str) -> bool:
    """Say whether a text is meant to be JSON: statements begin with a name."""
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def task_in(text: str, /, *, file: str) -> SaidByTask:
    """Read the one task of a document; raises ClientError for everything else."""
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ClientError(f"{file}: this is no JSON: {error}") from error
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ClientError(f"{file}: this is JSON, but not what {_COMMAND} prints")
    if len(tasks) != 1:
        found = f"it holds {len(tasks)} tasks" if tasks else "there is no task in it"
        raise ClientError(f"{file}: {found}: write it with {_COMMAND} for one ID")
    return _task(tasks[0], file)


def _task(task: dict[str, Any], file: str) -> SaidByTask:
    name = task.get("id")
    if "members" in task:
        raise ClientError(f"{file}: {name} is an array: ask for one of its members, such as {name}.1")
    tdv, requirement = task.get("tdv"), task.get("requirement")
    if not isinstance(tdv, dict) or not isinstance(requirement, str):
        raise ClientError(f"{file}: nothing in it says what {name} needs (`tdv`, `requirement`)")
    wrong = [f"{key} is {value!r}" for key, value in tdv.items() if not _is_value(value)]
    if wrong:
        raise ClientError(f"{file}: `tdv`: {', '.join(wrong)}: values are strings and integers of 64 bits")
    try:
        return SaidByTask(tdv=tdv, requirement=parse_predicate(requirement))
    except PredicateError as error:
        raise ClientError(f"{file}: `requirement`: {error}") from error


def _is_value(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return INTEGER_LOWEST <= value <= INTEGER_HIGHEST
    return isinstance(value, str)
