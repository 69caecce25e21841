"""`messiahs task …` and its short aliases: submit, run, status, explain, wait, logs, fetch, cancel, retry.

The subcommands in by_hand.py have no alias.
"""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, Unpack

import click

from messiahs.cli.exit_codes import exit_code_of, notice_of
from messiahs.cli.options import (
    ARRAY,
    DURATION,
    EACH_LINE,
    MODULE,
    STATE,
    TASK_IDS,
    WORKFLOW_FILE,
    PlaceOptions,
    SubmitOptions,
    place_options,
    place_options_without_ids,
    submit_options,
    task_options,
)
from messiahs.cli.output import print_document, print_text
from messiahs.cli.shell.completing import files, task_ids
from messiahs.cli.task.by_hand import hold, move, release, revoke
from messiahs.cli.task.listing import own_active, status
from messiahs.cli.task.modules import CommandClient, client_of, done_for_each, located
from messiahs.cli.task.planning import plan
from messiahs.cli.task.sentences import cancelled_text, waited_text
from messiahs.client.members import SINGLE, Members
from messiahs.client.module import ModuleClient
from messiahs.client.submission import Submission

_COMMAND = click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=files)
_COMMAND_OR_FILE = click.argument("command", nargs=-1, type=click.UNPROCESSED, shell_complete=files)
_COMMAND_SETTINGS = {"allow_interspersed_args": False}


@click.group()
def task() -> None:
    """Submit and manage tasks.

    Every subcommand but revoke, move, hold and release is also available without `task`.
    """


for _act in (status, plan, revoke, move, hold, release):
    task.add_command(_act)


@task.command(context_settings=_COMMAND_SETTINGS)
@submit_options
@place_options
@ARRAY
@EACH_LINE
@WORKFLOW_FILE
@_COMMAND_OR_FILE
def submit(
    command: tuple[str, ...],
    *,
    array: Members | None,
    each_line: Members | None,
    workflow_file: Path | None,
    **options: Unpack[SubmitOptions],
) -> None:
    """Submit a task and print its id once the module has stored it, or all tasks of a file, with their names.

    --array and --each-line submit one task per number or line; `{}` in COMMAND, --input, --output, --name, --env and
    --set is replaced by it. A submitted task has no standard input: data waiting on stdin is an error.
    """
    from messiahs.cli.progress import shown_progress
    from messiahs.cli.task.unread_input import refuse_input

    if workflow_file is not None:
        from messiahs.cli.task.workflows import submit_tasks_of

        submit_tasks_of(workflow_file, command, options)
        return
    if not command:
        raise click.UsageError("Missing argument 'COMMAND...', or --file FILE.")
    if array is not None and each_line is not None:
        raise click.UsageError("--array and --each-line cannot be combined")
    refuse_input()
    members = array or each_line or SINGLE
    with client_of(options) as client, shown_progress() as on_progress:
        submitted = client.submit(command, members=members, on_progress=on_progress, **task_options(options))
    if options["as_json"]:
        print_document({"id": submitted, "members": members.count})
    else:
        print_text(submitted)


@task.command(context_settings=_COMMAND_SETTINGS)
@submit_options
@click.option("-i", "--interactive", is_flag=True, help="Pass on a standard input that a loop or script has as well.")
@click.option("-t", "--tty", is_flag=True, help="Give the task a terminal: this one, with all its keys. It runs once.")
@place_options_without_ids
@_COMMAND
def run(command: tuple[str, ...], *, interactive: bool, tty: bool, **options: Unpack[SubmitOptions]) -> int:
    """Run a task as if it were local: stream its output, return its exit code and fetch its files.

    The task reads this command's standard input, except in a loop or script whose own it is. Ctrl-C ends the task; with
    -t (or -it) it is a key for the task like all others.
    """
    from messiahs.cli.progress import shown_progress
    from messiahs.cli.task.run import run_submission
    from messiahs.cli.task.standard_input import Source, standard_input
    from messiahs.cli.task.terminal import terminal_of_task, with_terminal
    from messiahs.client.preparing import prepared_submission

    stdin: Source | None = terminal_of_task(options) if tty else standard_input(is_wanted=interactive)
    place = located(None, options)

    def prepare(module: ModuleClient) -> Submission:
        with shown_progress() as on_progress:
            submission = prepared_submission(module, command, options=task_options(options), on_progress=on_progress)
        return with_terminal(replace(submission, takes_stdin=stdin is not None), stdin)

    return run_submission(place, prepare, stdin=stdin, as_json=options["as_json"])


@task.command()
@place_options_without_ids
@TASK_IDS
def explain(ids: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """Show who was asked for the places of tasks, in which order and why, and what happened to them.

    For one that waits or was denied: who refused and why, hop by hop, and what would have to change. The members of an
    array are grouped by what has become of them and why. A denial by the policy of the task's own module lists every
    comparison that failed.
    """
    from messiahs.cli.task.groups import group_documents
    from messiahs.cli.task.lines import show_groups, show_reasons

    with client_of(options) as client:
        tasks, unknown = client.found(*ids, explained=True)
        for document in tasks:
            members = client.found(document["id"], members=True)[0] if "counts" in document else None
            if options["as_json"]:
                document.update({} if members is None else {"groups": group_documents(members)})
            elif members is None:
                show_reasons([document])
            else:
                show_groups(document, members)
    if options["as_json"]:
        print_document({"tasks": tasks, "unknown": list(unknown)})
    for text in unknown.values():
        print_text(f"messiahs: {text}", err=True)
    return 1 if unknown else 0


@task.command()
@place_options_without_ids
@click.option("--timeout", type=DURATION, metavar="TIME", help="Wait for at most TIME (2h), then exit with 124.")
@TASK_IDS
def wait(ids: tuple[str, ...], *, timeout: int | None, **options: Unpack[PlaceOptions]) -> int:
    """Wait until tasks end; exit with the task's exit code, or for several tasks 0 if all exited 0, else 1."""
    from messiahs.cli.task.wait import waited

    ended = waited(ids, options, timeout_seconds=timeout)
    if options["as_json"]:
        print_document({"tasks": ended})
    for document in ended:
        if notice := notice_of(document):
            print_text(f"messiahs: {notice}", err=True)
    if not options["as_json"] and not options["quiet"] and (text := waited_text(ended)):
        print_text(text, err=True)
    codes = [exit_code_of(document) for document in ended]
    return codes[0] if len(codes) == 1 else int(any(codes))


@task.command()
@MODULE
@STATE
@click.option("--stderr", "is_stderr", is_flag=True, help="Print stderr instead of stdout.")
@click.option(
    "--follow", "-f", is_flag=True, help="Keep printing what is written, until the task or all members have ended."
)
@click.option("--failed", is_flag=True, help="Of an array, print only the members that ended without exit code 0.")
@TASK_IDS
def logs(
    ids: tuple[str, ...], *, module: str | None, state: Path | None, is_stderr: bool, follow: bool, failed: bool
) -> None:
    """Print the output of a task, byte for byte; of an array or of several tasks, each line behind the task's id."""
    from messiahs.client.member_logs import lines_of, prefixed

    if follow and len(ids) > 1:
        raise click.UsageError("--follow takes one task or array")
    stream: Literal["stdout", "stderr"] = "stderr" if is_stderr else "stdout"
    with CommandClient(module, state) as client:
        for task_id in ids:
            pieces: Iterable[bytes]
            if any("counts" in document for document in client.found(task_id)[0]):
                of_members = client.member_logs(task_id, stream=stream, follow=follow, failed=failed)
                named = ((f"{task_id}.{member}", piece) for member, piece in of_members)
                pieces = (lines_of if follow and not failed else prefixed)(named)
            elif failed:
                raise click.UsageError(f"--failed selects members of an array, and {task_id} is none")
            else:
                pieces = client.logs(task_id, stream=stream, follow=follow)
                if len(ids) > 1:
                    pieces = prefixed((task_id, piece) for piece in pieces)
            for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()


@task.command()
@place_options
@click.option("--mine", is_flag=True, help="All your own tasks of the module that have not ended, also as root.")
@click.argument("ids", metavar="[ID…]", nargs=-1, shell_complete=task_ids)
def cancel(ids: tuple[str, ...], *, mine: bool, **options: Unpack[PlaceOptions]) -> int:
    """Cancel tasks that have not ended; `wait` returns once they have.

    The exit code is 1 if one of ID had ended before by itself, and is 0 for one that was killed before.
    """
    if bool(ids) == mine:
        raise click.UsageError("name tasks, or say --mine for all of yours that have not ended")
    if mine:
        ids = own_active(options)
    cancelled, code = done_for_each(ids, options, act=ModuleClient.cancel)
    for document in cancelled:
        states = document.get("states", [])
        if document.get("has_ended") and not mine:
            print_text(f"messiahs: {document['id']} has ended before: {', '.join(states)}", err=True)
            code = code if "killed" in states else 1
    if options["as_json"]:
        print_document({"tasks": cancelled})
    elif options["quiet"]:
        for document in cancelled:
            print_text(document["id"])
    elif text := "none of your tasks is left to cancel" if mine and not ids else cancelled_text(cancelled):
        print_text(text)
    return code


@task.command()
@place_options_without_ids
@click.option("--into", type=click.Path(path_type=Path), default=Path(), metavar="DIR", help="Target folder [.].")
@TASK_IDS
def fetch(ids: tuple[str, ...], *, into: Path, **options: Unpack[PlaceOptions]) -> int:
    """Write the outputs of ended tasks into DIR; those of member 3 of an array go to DIR/3.

    What the members of a whole array printed is in DIR/3/stdout and DIR/3/stderr.
    """
    from messiahs.cli.task.fetch import fetch_tasks

    return fetch_tasks(ids, options, into=into)


@task.command()
@place_options
@click.option("--failed", is_flag=True, expose_value=False, help="Run failed tasks again (the default).")
@click.option(
    "--killed", is_flag=True, help="Only those that a cancel, a limit, a signal or the system ended, not their program."
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE[:NAME]",
    help="Replace the input of that name, for all later attempts; the other files are those of the submit.",
)
@TASK_IDS
def retry(ids: tuple[str, ...], *, killed: bool, inputs: tuple[str, ...], **options: Unpack[PlaceOptions]) -> int:
    """Run failed tasks, the failed members of arrays, or single members (ARRAY.7) again under the same ids.

    A task has failed if it ended without exit code 0, including killed and denied tasks; others are left alone. It gets
    the files of its submit, as they were then, except for those of --input, and its options. If one of several ids is
    unknown, nothing runs again; a later refusal of one is printed, the others run, and the exit code is 1.
    """
    from messiahs.cli.task.retrying import retried

    return retried(ids, options, killed=killed, inputs=inputs)
