"""What a shell offers after the tab key: commands, options, files, and the modules and tasks that are there now."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, shell_complete, split_arg_string

from messiahs.cli.shell import COMPLETE_VARIABLE
from messiahs.errors import MessiahsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from messiahs.client.connection import Document

SHELLS: Final = ("bash", "zsh", "fish")
_ANSWER_SECONDS: Final = 1.0
"""A module that does not answer within this time offers no ids: the user waits at the prompt."""
_OFFERED: Final = 200
"""Ids that are offered at most, the newest."""


def words_of_the_line() -> list[str]:
    """Return the words of the line that a shell completes, without the name of the program."""
    return split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]


def answer_shell(root: click.Group, request: str) -> int:
    """Print what a shell asks for, `bash_complete` or `bash_source`; return the exit code."""
    return shell_complete(root, {}, "messiahs", COMPLETE_VARIABLE, request)


def module_names(context: click.Context, _: click.Parameter, incomplete: str, /) -> list[CompletionItem]:
    """Return the modules of this host that begin with what is entered."""
    from messiahs.client.locating import known_modules

    names = {place.module for place in known_modules(_state(context))}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def task_ids(context: click.Context, _: click.Parameter, incomplete: str, /) -> list[CompletionItem]:
    """Return the ids of tasks and arrays that begin with what is entered, the newest first, each with its state.

    Behind the dot after an array they are those of its members.
    """
    # Every command names these functions, and most need no client.
    from messiahs.client.locating import known_modules
    from messiahs.client.module import ModuleClient

    wanted = context.params.get("module")
    found: list[Document] = []
    for place in known_modules(_state(context)):
        if wanted in (None, place.module):
            with (
                suppress(MessiahsError, OSError),
                ModuleClient(place.socket, patience=0, answer_seconds=_ANSWER_SECONDS) as module,
            ):
                found += module.tasks()["tasks"]
    entered = set(context.params.get("ids") or ())
    offered = [task for task in reversed(found) if task["id"].startswith(incomplete) and task["id"] not in entered]
    items = [CompletionItem(task["id"], help=_summary(task)) for task in offered[:_OFFERED]]
    return items or [CompletionItem(member) for member in islice(_members(found, incomplete), _OFFERED)]


def files(_: click.Context, __: click.Parameter, incomplete: str, /) -> list[CompletionItem]:
    """Leave the completion of files to the shell."""
    return [CompletionItem(incomplete, type="file")]


def _state(context: click.Context) -> Path:
    from messiahs.client.locating import searched_directory

    given: Path | None = context.params.get("state")
    return searched_directory(given and given.expanduser())


def _members(tasks: "Sequence[Document]", incomplete: str) -> Iterator[str]:
    """Yield the ids of the members of the array with which a text begins that begin with all of it."""
    array, dot, _ = incomplete.rpartition(".")
    for task in tasks:
        if dot and task["id"] == array and "counts" in task:
            ids = (f"{array}.{number}" for number in range(1, task["members"] + 1))
            yield from (member for member in ids if member.startswith(incomplete))


def _summary(task: "Document") -> str:
    counts = {} if "state" in task else task["counts"]
    state = task.get("state") or ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{state} {task['name']}".strip()
