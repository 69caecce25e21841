"""`messiahs plan`: what would become of a task, without running it."""

from typing import Unpack, cast

import click

from messiahs.cli.exit_codes import WOULD_BE_DENIED, WOULD_WAIT
from messiahs.cli.options import (
    ARRAY,
    EACH_LINE,
    SubmitOptions,
    place_options_without_ids,
    submit_options,
    task_options,
)
from messiahs.cli.output import print_document, print_text
from messiahs.cli.shell.completing import files
from messiahs.cli.task.modules import client_of
from messiahs.client.connection import Document
from messiahs.client.members import SINGLE, Members


@click.command(context_settings={"allow_interspersed_args": False})
@submit_options
@place_options_without_ids
@ARRAY
@EACH_LINE
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=files)
def plan(
    command: tuple[str, ...],
    *,
    array: Members | None,
    each_line: Members | None,
    **options: Unpack[SubmitOptions],
) -> int:
    """Show what would become of a task if it were submitted now, and why, without submitting it.

    That is who would be asked for its place, in which order and why, what its own module would answer, for what it
    would wait, and what would have to change. Neighbors are judged by what they last advertised; when asked, they
    decide by their own policy. The options are those of submit; nothing is uploaded, sent or stored.

    Tasks of an array whose descriptions differ (--set with {}) are planned apart, for the first 16 descriptions.

    The exit code is 0 if the task would start now somewhere, 3 if it would wait, and 4 if it would be denied; of
    several descriptions, the highest.
    """
    from messiahs.cli.progress import shown_progress
    from messiahs.cli.task.plan_lines import plan_lines

    if array is not None and each_line is not None:
        raise click.UsageError("--array and --each-line cannot be combined")
    members = array or each_line or SINGLE
    with client_of(options) as client, shown_progress() as on_progress:
        planned = client.plan(command, members=members, on_progress=on_progress, **task_options(options))
    if options["as_json"]:
        print_document(planned)
    else:
        for line in plan_lines(cast("Document", planned)):
            print_text(line)
    outcomes = {planned["outcome"], *(each["outcome"] for each in planned.get("others", ()))}
    return WOULD_BE_DENIED if "deny" in outcomes else WOULD_WAIT if "wait" in outcomes else 0
