"""`messiahs status`: the tasks of a module, or some of them."""

from typing import Unpack

import click

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.options import PlaceOptions, place_options
from messiahs.cli.output import print_document, print_text
from messiahs.cli.shell.completing import task_ids
from messiahs.cli.task.modules import client_of
from messiahs.cli.task.whose import own_name
from messiahs.client.status import Listed, is_final
from messiahs.core.model.texts import printable


class StatusOptions(PlaceOptions):
    """Options of `status`."""

    members: bool
    failed: bool
    active: bool
    mine: bool
    user: str | None


@click.command()
@place_options
@click.option("--members", is_flag=True, help="Show each member of an array.")
@click.option("--failed", is_flag=True, help="Show only tasks that ended without exit code 0.")
@click.option("--active", is_flag=True, help="Show only tasks that have not ended.")
@click.option("--mine", is_flag=True, help="Show only your own tasks, also as root.")
@click.option("--user", metavar="NAME", help="Show only the tasks of NAME.")
@click.argument("ids", metavar="[ID…]", nargs=-1, shell_complete=task_ids)
def status(ids: tuple[str, ...], **options: Unpack[StatusOptions]) -> int:
    """Show the named tasks, or all tasks of the module, the newest last, and those that wait for others below these.

    The list of all tasks says for an hour why one was denied; `explain ID` says it later.
    """
    from messiahs.cli.task.lines import show_tasks

    for one, other in (("failed", "active"), ("mine", "user")):
        if options[one] and options[other]:  # type: ignore[literal-required]
            raise click.UsageError(f"--{one} and --{other} cannot be combined")
    among = Listed(own_name() if options["mine"] else options["user"], only_active=options["active"])
    with client_of(options) as client:
        tasks, unknown = client.found(*ids, members=options["members"] or options["failed"], among=among)
    if options["failed"]:
        tasks = [document for document in tasks if is_final(document) and exit_code_of(document)]
    if options["as_json"]:
        print_document({"tasks": tasks, "unknown": list(unknown)})
    elif options["quiet"]:
        for document in tasks:
            print_text(document["id"])
    else:
        show_tasks(tasks, are_named=bool(ids))
        if not ids:
            _note_machine(options)
    for text in unknown.values():
        print_text(f"messiahs: {text}", err=True)
    return 1 if unknown else 0


def own_active(options: PlaceOptions) -> tuple[str, ...]:
    """Return the ids of one's own tasks and arrays that have not ended, the newest first.

    In this order a task is cancelled before the one for which it waits, whose end would deny it.
    """
    with client_of(options) as client:
        tasks, _ = client.found(among=Listed(own_name(), only_active=True))
    return tuple(str(task["id"]) for task in reversed(tasks))


def _note_machine(options: PlaceOptions) -> None:
    """Say on stderr if the owner of the module's machine has turned the dial, or announced that it will be away."""
    from messiahs.cli.lending import dial_text, maintenance_text
    from messiahs.client.lending import turned_dial
    from messiahs.client.locating import locate_module
    from messiahs.client.maintenance import announced_drain

    place = locate_module(options["module"], state=options["state"])
    dial = turned_dial(place.socket)
    if dial is not None:
        print_text(f"the machine of {place.module} {dial_text(dial)}", err=True)
    announced = announced_drain(place.socket)
    if announced is not None:
        print_text(printable(f"the machine of {place.module} {maintenance_text(announced)}"), err=True)
