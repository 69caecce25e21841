"""`messiahs fetch`: write the outputs of tasks to a folder."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import click

from messiahs.cli.options import PlaceOptions
from messiahs.cli.output import may_run_text, outputs_text_of, print_document, print_text
from messiahs.cli.progress import shown_progress
from messiahs.cli.task.modules import client_of
from messiahs.client.completion import unknown_in
from messiahs.client.connection import Document
from messiahs.client.fetching import OutputFile, check_places, fetch, fetch_with_logs, outputs_of_all
from messiahs.client.locating import member_of
from messiahs.client.module import ModuleClient
from messiahs.client.status import is_final
from messiahs.core.model.texts import printable

_SHOWN_NAMES = 5
_SHOWN_PATHS = 20


@dataclass(slots=True)
class _Found:
    """Outputs to fetch, ids of tasks without outputs and of those with each text about outputs, problems (mutable)."""

    outputs: list[OutputFile] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    """The members that have ended; none for a task that is no member."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def fetch_tasks(ids: tuple[str, ...], options: PlaceOptions, *, into: Path) -> int:
    """Write the outputs of tasks below `into`, and print what could not be fetched or is not there.

    Returns 1 if a task has no outputs, has not ended, or is unknown. Omitted outputs are named, and do not count.
    """
    written: list[Document] = []
    problems: list[str] = []
    is_whole = True
    found = {name: _found(name, options) for name in dict.fromkeys(ids)}
    check_places(output for one in found.values() for output in one.outputs)
    for name, one in found.items():
        problems += one.problems
        fetched = _fetched(name, one, options, into)
        written += fetched
        lacking = [task for task in one.lacking if task not in {document["task"] for document in fetched}]
        is_whole &= not lacking
        told = {task for names in one.texts.values() for task in names}
        if lacking := [task for task in lacking if task not in told]:
            problems.append(f"{_list(lacking)} produced no outputs (`--output NAME` declares them)")
    if options["as_json"]:
        print_document({"outputs": written})
    else:
        _show_written(written, into)
    for one in found.values():
        for text, names in one.texts.items():
            print_text(f"messiahs: {printable(f'{_list(names)}: {text}')}", err=True)
    for problem in problems:
        print_text(f"messiahs: {printable(problem)}", err=True)
    return 0 if is_whole and not problems else 1


def write_outputs(module: ModuleClient, outputs: tuple[OutputFile, ...], *, into: Path) -> list[Document]:
    """Write outputs with a progress bar, and return a document for each."""
    with shown_progress() as on_progress:
        return [output.document(into) for output in fetch(module, outputs, into=into, on_progress=on_progress)]


def _found(name: str, options: PlaceOptions) -> _Found:
    found = _Found()
    with client_of(options) as client, client.at(name) as module:
        answer = module.tasks(name, members=True)
        members = answer["tasks"]
        found.problems.extend(unknown_in(answer).values())
        outputs = outputs_of_all(module, [member["id"] for member in members if _has_ended(member)])
        for member in members:
            if _has_ended(member):
                left = outputs[member["id"]]
                found.outputs += left
                found.lacking += [] if left else [member["id"]]
                found.ended += [number] if (number := member_of(member["id"])) else []
                if text := outputs_text_of(member):
                    found.texts.setdefault(text, []).append(member["id"])
    open_ends: dict[str, list[str]] = {}
    for member in members:
        if is_final(member) and not _has_ended(member):
            open_ends.setdefault(may_run_text(member), []).append(member["id"])
    found.problems += [f"{_list(names)} {text}, and leaves outputs then" for text, names in open_ends.items()]
    running = [member["id"] for member in members if not is_final(member)]
    if running:
        subject = f"{len(running)} of {len(members)} members of {name} have" if len(members) > 1 else f"{name} has"
        found.problems.append(f"{subject} not ended yet; `messiahs wait {name}` waits for the end")
    return found


def _has_ended(task: Document) -> bool:
    """Whether a task has ended, and does not run on at its machine although it is cancelled."""
    return is_final(task) and not may_run_text(task)


def _fetched(name: str, found: _Found, options: PlaceOptions, into: Path) -> list[Document]:
    if not found.outputs and not found.ended:
        return []
    with client_of(options) as client, client.at(name) as module, shown_progress() as on_progress:
        files = fetch_with_logs(
            module, name, outputs=found.outputs, into=into, members=found.ended, on_progress=on_progress
        )
        return [file.document(into) for file in files]


def _show_written(written: list[Document], into: Path) -> None:
    """Print the paths of what was written; on a terminal, only how many there are if they are many."""
    for_people = sys.stdout.isatty()
    if for_people and len(written) > _SHOWN_PATHS:
        print_text(printable(f"{len(written)} files of {len({one['task'] for one in written})} tasks are in {into}"))
        return
    for document in written:
        if for_people:
            print_text(printable(document["path"]))
        else:
            click.echo(document["path"])  # noqa: TID251 - a program that reads the paths needs them as they are


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    return f"{shown} and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else shown
