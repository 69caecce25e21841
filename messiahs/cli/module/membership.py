"""`messiahs module drain|undrain|remove|leave`: what an administrator does to a module and its neighbors."""

import time
from pathlib import Path
from typing import TypedDict, Unpack

import click

from messiahs.cli.lending import maintenance_text
from messiahs.cli.options import DURATION, JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.cli.times import coming_time
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.looking import refuse_stopped
from messiahs.client.module import ModuleClient
from messiahs.core.model.counts import left_text
from messiahs.core.model.texts import printable

_LOOK_SECONDS = 0.5
_REASON = click.option("--reason", default="", metavar="TEXT", help="Shown to those whose requests are denied.")
_LOGGED_REASON = click.option("--reason", default="", metavar="TEXT", help="Kept in the log.")
_FAREWELL = click.option("--reason", default="", metavar="TEXT", help="Kept in the log, and told to the neighbor.")


class _Options(TypedDict):
    """Options that choose the module, and the form of the answer."""

    module: str | None
    state: Path | None
    as_json: bool


@click.command()
@click.option("--deadline", type=DURATION, metavar="T", help="Revoke what still runs after T (such as 2h).")
@click.option(
    "--from", "begins", type=coming_time, metavar="TIME", help="Announce it for 18:00, 2026-01-31 or 2026-01-31T18:00."
)
@_REASON
@click.option("--no-wait", is_flag=True, help="Return at once, not when nothing is left.")
@MODULE
@STATE
@JSON
def drain(
    *,
    deadline: int | None,
    begins: int | None,
    reason: str,
    no_wait: bool,
    **options: Unpack[_Options],
) -> int:
    """Take no new work, and wait until all work of others has ended or is elsewhere.

    Requests of neighbors are denied with the reason, the machine leaves the vectors, and tasks of this module's users
    are placed elsewhere. The drain lasts until `module undrain`, also across restarts. Ctrl-C ends the waiting alone.
    With --from, it is announced and begins then: until that time the machine takes the tasks that end before, by their
    --time, and those that state none. Only root and the user of the module may use this command.
    """
    place, as_json = _answering(options["module"], options["state"]), options["as_json"]
    with ModuleClient(place.socket, patience=None) as client:
        found = client.drain(deadline_seconds=deadline, reason=reason, begins=begins)
        # One that begins within this second is not announced any more.
        if found.get("maintenance") is not None:
            return _show_announced(found, as_json=as_json)
        try:
            while not no_wait and found["drain"] is not None and not found["drain"]["empty"]:
                found = _changed(client, found, is_silent=as_json)
        except KeyboardInterrupt:
            again = f"`messiahs module undrain --module {place.module}`"
            print_text(f"\n{place.module} stays drained: {again} lets it take work again", err=True)
            raise
    if as_json:
        print_document(found)
    elif found["drain"] is None:
        print_text(f"the drain of {place.module} was ended by `module undrain`", err=True)
    else:
        verb = "is drained" if found["drain"]["empty"] else "drains"
        print_text(f"{place.module} {verb}: {what_is_left(found['drain']['left'])}")
    return 0 if found["drain"] is not None else 1


def _show_announced(found: Document, *, as_json: bool) -> int:
    if as_json:
        print_document(found)
    else:
        print_text(printable(f"{found['name']} {maintenance_text(found['maintenance'])}"))
    return 0


@click.command()
@_LOGGED_REASON
@MODULE
@STATE
@JSON
def undrain(*, reason: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Let a drained module take work again. Only root and the user of the module may use this command."""
    place = _answering(module, state)
    with ModuleClient(place.socket) as client:
        found = client.drain(is_on=False, reason=reason)
    if as_json:
        print_document(found)
    else:
        print_text(f"{place.module} takes work")


@click.command()
@click.argument("name", metavar="NEIGHBOR")
@click.option("--now", "at_once", is_flag=True, help="End claims at once, and kill what runs in them.")
@_FAREWELL
@MODULE
@STATE
@JSON
def remove(name: str, *, at_once: bool, reason: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Remove NEIGHBOR for good: the link ends when its claims have, and neither side opens it again.

    With --now, tasks of NEIGHBOR here are killed; tasks of this module that are there begin again elsewhere when their
    leases have expired, since they may still run until then (`status` shows when). The link ends at once if NEIGHBOR is
    not connected, and after ten seconds if it does not answer. `module list` shows a link that is being ended. Only
    root and the user of the module may use this command.
    """
    place = _answering(module, state)
    with ModuleClient(place.socket) as client:
        client.remove_neighbor(name, at_once=at_once, reason=reason)
        while at_once and _leaving(client, name) is not None:
            time.sleep(_LOOK_SECONDS)
        _show_end(client, name, own=place.module, as_json=as_json)


@click.command()
@click.argument("parent")
@_FAREWELL
@MODULE
@STATE
@JSON
def leave(parent: str, *, reason: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Leave PARENT for good: the link ends when its claims have. As `module remove`, for a parent alone."""
    place = _answering(module, state)
    with ModuleClient(place.socket) as client:
        client.leave(parent, reason=reason)
        _show_end(client, parent, own=place.module, as_json=as_json)


def _answering(module: str | None, state: Path | None) -> ModulePlace:
    """Locate a module; raises if its process is stopped, since these commands wait as long as a module needs."""
    place = locate_module(module, state=state)
    refuse_stopped(place)
    return place


def _show_end(client: ModuleClient, name: str, *, own: str, as_json: bool) -> None:
    leaving = _leaving(client, name)
    if as_json:
        print_document({"name": own, "neighbor": name, "leaving": leaving})
    elif leaving is None:
        print_text(f"{name} is no neighbor of {own} any more")
    else:
        print_text(f"the link of {own} with {name} ends when nothing is left on it")


def _leaving(client: ModuleClient, name: str) -> Document | None:
    """Return what is left on the link with a neighbor; None if it has ended."""
    found = (each["leaving"] for each in client.neighbors() if each["name"] == name)
    return next(found, None)


def _changed(client: ModuleClient, before: Document, *, is_silent: bool) -> Document:
    """Say what is left, and return the next answer that differs."""
    if not is_silent:
        print_text(printable(f"{before['name']} drains: {what_is_left(before['drain']['left'])}"))
    found = before
    while found["drain"] == before["drain"]:
        time.sleep(_LOOK_SECONDS)
        found = client.drain_state()
    return found


def what_is_left(left: Document) -> str:
    """Return what a drained module still has to end."""
    return left_text(attempts=left["attempts"], granted=left["granted"], passed=left["passed"])
