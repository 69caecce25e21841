"""`messiahs module parent …`: the parents of a running module, and which of them counts it."""

import time
from pathlib import Path
from typing import Final

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.looking import refuse_stopped
from messiahs.client.module import ModuleClient

_PAUSE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.2


@click.group()
def parent() -> None:
    """Show the parents of a running module, add one of its site, and change which of them counts it."""


@parent.command("add")
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--token", "file", type=click.Path(path_type=Path), required=True, help="A token of it (`messiahs join token`)."
)
@MODULE
@STATE
@JSON
def add_parent(address: str, *, file: Path, module: str | None, state: Path | None, as_json: bool) -> None:
    """Make the module at HOST:PORT a parent of a running module, besides those that it has.

    The module keeps its certificate. The primary parent stays the one that counts its machines. Where an administrator
    of the new parent has to decide, the command waits. Only root and the user of the module may use it.
    """
    from messiahs.cli.federation.newcomer import read_token

    place = locate_module(module, state=state)
    refuse_stopped(place)
    token = read_token(file, address=address).to_text()
    told = ""
    with ModuleClient(place.socket) as client:
        while (answer := client.add_parent(token))["waits_for"]:
            if answer["waits_for"] != told:
                told = str(answer["waits_for"])
                print_text(told, err=True)
            time.sleep(_PAUSE_SECONDS)
    if as_json:
        print_document({"parent": answer["parent"], "module": place.module})
    else:
        print_text(f"{answer['parent']} is a parent of {place.module}")


@parent.command("show")
@MODULE
@STATE
@JSON
def show(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show the parents of a module, the primary one, and the one that counts the module now."""
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        found = client.parents()
    if as_json:
        print_document(found)
        return
    if not found["parents"]:
        print_text(f"{place.module} has no parent")
    for name in found["parents"]:
        notes = [text for text, key in (("primary", "primary"), ("counts it", "counted_at")) if found[key] == name]
        print_text(" ".join((name, *([f"({', '.join(notes)})"] if notes else []))))


@parent.command("primary")
@click.argument("name", metavar="PARENT")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the people of this site.")
@click.option("--no-wait", is_flag=True, help="Return when the change has begun.")
@MODULE
@STATE
@JSON
def primary(name: str, *, reason: str, no_wait: bool, module: str | None, state: Path | None, as_json: bool) -> None:
    """Let another parent count this module and the systems below it.

    For a moment no parent counts them: the new one begins when the old one and all systems above it have taken them out
    of their sums. An old parent that does not answer is waited for until its input timeout. Tasks that run go on. Only
    root and the user of the module may use this command.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        found = client.change_primary_parent(name, reason=reason)
        while not no_wait and not is_done(found):
            time.sleep(_LOOK_SECONDS)
            found = client.parents()
    if as_json:
        print_document(found)
    else:
        print_text(f"{name} {'counts' if is_done(found) else 'is to count'} {place.module}")


def is_done(found: Document) -> bool:
    """Return whether no handover is in progress."""
    return found["handover"] is None or bool(found["handover"]["done"])
