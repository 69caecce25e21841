"""`messiahs task …` and its short aliases: submit, run, status, wait, logs, cancel."""

import sys
from pathlib import Path
from typing import Unpack

import click

from messiahs.cli.exit_codes import FEDERATION_FAILED, exit_code_of, failure_of
from messiahs.cli.options import (
    ARRAY,
    MODULE,
    STATE,
    PlaceOptions,
    SubmitOptions,
    place_options,
    submission_of,
    submit_options,
)
from messiahs.cli.output import print_document, print_table, reason_lines, result_of, state_of
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.module import ModuleClient, is_final
from messiahs.errors import ClientError, ModuleUnreachableError

_COMMAND = click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
_SOME_IDS = click.argument("ids", metavar="ID…", nargs=-1, required=True)
_COMMAND_SETTINGS = {"allow_interspersed_args": False}


@click.group()
def task() -> None:
    """Submit tasks and follow them (each command is there without `task`, too)."""


@task.command(context_settings=_COMMAND_SETTINGS)
@submit_options
@ARRAY
@_COMMAND
def submit(command: tuple[str, ...], *, array: int | None, **options: Unpack[SubmitOptions]) -> None:
    """Hand in a task and print its id; it is stored by then."""
    submission = submission_of(command, options, members=array or 0)
    with ModuleClient(locate_module(options["module"], state=options["state"]).socket) as module:
        submitted = module.submit(submission)
    if options["as_json"]:
        print_document({"id": submitted, "members": submission.members})
    else:
        click.echo(submitted)


@task.command(context_settings=_COMMAND_SETTINGS)
@submit_options
@_COMMAND
def run(command: tuple[str, ...], **options: Unpack[SubmitOptions]) -> int:
    """Run a task as if it were local: its output, its exit code, and Ctrl-C ends it."""
    from messiahs.cli.running import run_submission

    place = _located(None, options)
    return run_submission(place, submission_of(command, options), as_json=options["as_json"])


@task.command()
@place_options
@click.option("--members", is_flag=True, help="Show each member of an array.")
@click.option("--failed", is_flag=True, help="Show only what ended otherwise than with exit code 0.")
@click.argument("ids", metavar="[ID…]", nargs=-1)
def status(ids: tuple[str, ...], *, members: bool, failed: bool, **options: Unpack[PlaceOptions]) -> int:
    """Show tasks: those named, or all of the module."""
    tasks, unknown = _tasks(ids, members=members or failed, options=options)
    if failed:
        tasks = [document for document in tasks if is_final(document) and exit_code_of(document)]
    if options["as_json"]:
        print_document({"tasks": tasks, "unknown": unknown})
    elif options["quiet"]:
        for document in tasks:
            click.echo(document["id"])
    else:
        _show(tasks)
    for name in unknown:
        click.echo(f"messiahs: no task `{name}` is known", err=True)
    return 1 if unknown else 0


@task.command()
@place_options
@_SOME_IDS
def wait(ids: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """Wait for the end of tasks: gives the task's exit code; of several 0 if all exited 0, else 1."""
    ended = [_waited(name, options) for name in ids]
    if options["as_json"]:
        print_document({"tasks": ended})
    for document in ended:
        if failure := failure_of(document):
            click.echo(f"messiahs: {failure}", err=True)
    codes = [exit_code_of(document) for document in ended]
    return codes[0] if len(codes) == 1 else int(any(codes))


@task.command()
@MODULE
@STATE
@click.option("--stderr", "is_stderr", is_flag=True, help="What it wrote to stderr, instead of stdout.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the task ends.")
@click.argument("task_id", metavar="ID")
def logs(task_id: str, *, module: str | None, state: Path | None, is_stderr: bool, follow: bool) -> None:
    """Print what a task wrote, byte by byte as it wrote it."""
    stream = "stderr" if is_stderr else "stdout"
    with ModuleClient(locate_module(module, task=task_id, state=state).socket) as client:
        for piece in client.logs(task_id, stream=stream, follow=follow):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


@task.command()
@place_options
@_SOME_IDS
def cancel(ids: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """End tasks; `wait` says when it is done. What has ended already stays as it is."""
    code, cancelled = 0, []
    for name in ids:
        try:
            with _client_for(name, options) as module:
                module.cancel(name)
            cancelled.append({"id": name})
        except ModuleUnreachableError:
            raise
        except ClientError as error:
            code = error.code
            click.echo(f"messiahs: {name}: {error}", err=True)
    if options["as_json"]:
        print_document({"tasks": cancelled})
    elif options["quiet"]:
        for document in cancelled:
            click.echo(document["id"])
    return code


def _client_for(task_id: str, options: PlaceOptions) -> ModuleClient:
    return ModuleClient(locate_module(options["module"], task=task_id, state=options["state"]).socket)


def _waited(task_id: str, options: PlaceOptions) -> Document:
    place = _located(task_id, options)
    with ModuleClient(place.socket, patience=None) as module:
        return module.wait(task_id)


def _located(task_id: str | None, options: PlaceOptions) -> ModulePlace:
    """Give the module for `run` and `wait`, whose other codes are the task's own."""
    try:
        return locate_module(options["module"], task=task_id, state=options["state"])
    except ClientError as error:
        raise ClientError(str(error), code=FEDERATION_FAILED) from error


def _tasks(ids: tuple[str, ...], *, members: bool, options: PlaceOptions) -> tuple[list[Document], list[str]]:
    """Give the tasks in the order of their ids; tasks of several modules are asked of each."""
    tasks: list[Document] = []
    unknown: list[str] = []
    asked: dict[Path, list[str]] = {}
    for name in ids or (None,):
        socket = locate_module(options["module"], task=name, state=options["state"]).socket
        asked.setdefault(socket, []).extend([] if name is None else [name])
    for socket, names in asked.items():
        with ModuleClient(socket) as module:
            answer = module.tasks(*names, members=members)
        tasks += answer["tasks"]
        unknown += answer.get("unknown", [])
    return tasks, unknown


def _show(tasks: list[Document]) -> None:
    singles = [document for document in tasks if "counts" not in document]
    if singles:
        header = ("ID", "STATE", "RESULT", "ATTEMPT", "MODULE", "SUBMITTED", "NAME")
        print_table(header, [_row(document) for document in singles])
    for document in tasks:
        if "counts" in document:
            counts = ", ".join(f"{count} {state}" for state, count in document["counts"].items() if count)
            click.echo(f"{document['id']}: {document['members']} members: {counts}")
        elif document.get("reasons"):
            click.echo(f"\n{document['id']} was denied by")
            for line in reason_lines(document["reasons"], depth=1):
                click.echo(line)


def _row(document: Document) -> tuple[object, ...]:
    return (
        document["id"],
        state_of(document),
        result_of(document),
        document.get("attempt") or "-",
        document.get("executed_on") or "-",
        document.get("submitted_at") or "-",
        document.get("name") or "",
    )
