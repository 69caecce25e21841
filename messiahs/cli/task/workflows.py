"""`messiahs submit --file`: the tasks of a file, all or none."""

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from messiahs.cli.options import SubmitOptions
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.cli.progress import shown_progress
from messiahs.cli.task.modules import client_of

_ALSO: Final = frozenset(("workflow_file", "module", "state", "as_json", "quiet", "key"))


def submit_tasks_of(file: Path, command: tuple[str, ...], options: SubmitOptions, /) -> None:
    """Submit the tasks of a file and print their names and ids; a usage error for options that belong into it."""
    context = click.get_current_context()
    named = {each.name: each for each in context.command.params}
    given = [
        named[name].opts[0]
        for name in context.params
        if name not in _ALSO and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if command or given:
        stated = f"`{' '.join(command)}`" if command else given[0]
        raise click.UsageError(f"with --file, the file says what is submitted: write {stated} into it")
    with client_of(options) as client, shown_progress() as on_progress:
        ids = client.submit_file(file, key=options["key"], on_progress=on_progress)
    if options["as_json"]:
        print_document({"tasks": ids})
    elif options["quiet"]:
        for task in ids.values():
            print_text(task)
    else:
        print_table(("NAME", "ID"), list(ids.items()))
