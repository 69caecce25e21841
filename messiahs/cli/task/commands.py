"""`messiahs task …` and its short aliases: submit, run, status, explain, wait, logs, fetch, cancel, retry."""

import sys
from pathlib import Path
from typing import Unpack

import click

from messiahs.cli.exit_codes import exit_code_of, failure_of
from messiahs.cli.members import Members
from messiahs.cli.options import (
    ARRAY,
    EACH_LINE,
    MODULE,
    STATE,
    PlaceOptions,
    SubmitOptions,
    place_options,
    place_options_without_ids,
    submit_options,
)
from messiahs.cli.output import print_document
from messiahs.cli.task.modules import client_for, located, tasks_of
from messiahs.client.locating import locate_module
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
@place_options
@ARRAY
@EACH_LINE
@_COMMAND
def submit(
    command: tuple[str, ...], *, array: Members | None, each_line: Members | None, **options: Unpack[SubmitOptions]
) -> None:
    """Hand in a task and print its id; it is stored by then.

    With --array or --each-line it is one task for each number or line, which `{}` stands for in CMD, --input,
    --output, --name, --env and --set. Tasks have no standard input: data that waits there is refused.
    """
    from messiahs.cli.task.submission import handed_in
    from messiahs.cli.task.unread_input import refuse_input

    if array is not None and each_line is not None:
        raise click.UsageError("--array and --each-line exclude each other")
    refuse_input()
    members = array or each_line or Members()
    with ModuleClient(locate_module(options["module"], state=options["state"]).socket) as module:
        submitted = module.submit(handed_in(module, command, options=options, members=members))
    if options["as_json"]:
        print_document({"id": submitted, "members": members.count})
    else:
        click.echo(submitted)


@task.command(context_settings=_COMMAND_SETTINGS)
@submit_options
@place_options_without_ids
@_COMMAND
def run(command: tuple[str, ...], **options: Unpack[SubmitOptions]) -> int:
    """Run a task as if it were local: its output, its exit code, its files, and Ctrl-C ends it.

    It has no standard input: data that waits there is refused, so that it is not lost; --input passes a file.
    """
    from messiahs.cli.task.run import run_submission
    from messiahs.cli.task.submission import handed_in
    from messiahs.cli.task.unread_input import refuse_input, tell_of_lost_input

    refuse_input()
    place = located(None, options)
    code = run_submission(place, lambda module: handed_in(module, command, options=options), as_json=options["as_json"])
    tell_of_lost_input()
    return code


@task.command()
@place_options
@click.option("--members", is_flag=True, help="Show each member of an array.")
@click.option("--failed", is_flag=True, help="Show only what ended otherwise than with exit code 0.")
@click.argument("ids", metavar="[ID…]", nargs=-1)
def status(ids: tuple[str, ...], *, members: bool, failed: bool, **options: Unpack[PlaceOptions]) -> int:
    """Show tasks: those named, or all of the module, the newest last."""
    from messiahs.cli.task.lines import show_tasks

    tasks, unknown = tasks_of(ids, options, members=members or failed)
    if failed:
        tasks = [document for document in tasks if is_final(document) and exit_code_of(document)]
    if options["as_json"]:
        print_document({"tasks": tasks, "unknown": unknown})
    elif options["quiet"]:
        for document in tasks:
            click.echo(document["id"])
    else:
        show_tasks(tasks)
    for name in unknown:
        click.echo(f"messiahs: no task `{name}` is known", err=True)
    return 1 if unknown else 0


@task.command()
@place_options_without_ids
@_SOME_IDS
def explain(ids: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """Say why tasks wait or were denied: who was asked and what they answered, hop by hop.

    A denial by the policy of the task's own module comes with each comparison that was against it.
    """
    from messiahs.cli.task.lines import show_reasons

    tasks, unknown = tasks_of(ids, options)
    if options["as_json"]:
        print_document({"tasks": tasks, "unknown": unknown})
    else:
        show_reasons(tasks)
    for name in unknown:
        click.echo(f"messiahs: no task `{name}` is known", err=True)
    return 1 if unknown else 0


@task.command()
@place_options_without_ids
@_SOME_IDS
def wait(ids: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """Wait for the end of tasks: gives the task's exit code; of several 0 if all exited 0, else 1."""
    from messiahs.cli.task.wait import waited

    ended = waited(ids, options)
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
            with client_for(name, options) as module:
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


@task.command()
@place_options_without_ids
@click.option("--into", type=click.Path(path_type=Path), default=Path(), metavar="DIR", help="Where to [.].")
@_SOME_IDS
def fetch(ids: tuple[str, ...], *, into: Path, **options: Unpack[PlaceOptions]) -> int:
    """Write what ended tasks left behind into DIR; that of member 3 of an array goes to DIR/3."""
    from messiahs.cli.task.fetch import fetch_tasks

    return fetch_tasks(ids, options, into=into)


@task.command()
@place_options
@click.option("--failed", is_flag=True, required=True, help="Run again what failed (the only choice).")
@click.argument("array_id", metavar="ID")
def retry(array_id: str, *, failed: bool, **options: Unpack[PlaceOptions]) -> None:
    """Run a task again that failed, or the members of an array that did, under the same ids.

    Whatever ended otherwise than with exit code 0 has failed: also what was killed or denied.
    """
    assert failed, "it must be said"
    with client_for(array_id, options) as module:
        retried = module.retry(array_id)
    if options["as_json"]:
        print_document({"id": array_id, "retried": retried})
    elif options["quiet"]:
        click.echo(array_id)
    else:
        click.echo(f"{array_id}: {retried} {'runs' if retried == 1 else 'run'} again")
