"""`messiahs task revoke`, `move`, `hold` and `release`: acts on tasks by hand, at their origin or where they run."""

from typing import Unpack

import click

from messiahs.cli.options import TASK_IDS, PlaceOptions, place_options
from messiahs.cli.output import print_document, print_text
from messiahs.cli.task.modules import done_for_each
from messiahs.client.connection import Document

_REASON = click.option("--reason", default="", metavar="TEXT", help="Text that `status` and `explain` show.")


@click.command()
@place_options
@_REASON
@TASK_IDS
def revoke(ids: tuple[str, ...], *, reason: str, **options: Unpack[PlaceOptions]) -> int:
    """End the running attempts of tasks or arrays; the tasks search for a place again, also where they ran.

    Nothing is lost: the next attempt has the next number, and does not count against --retries. At the module where the
    task runs (--module), its administrator takes it off the machine, which accepts no task of that user and shape for
    the `bar` of its policy (1 min). Enter it at the task's origin as the task's user, or as root or the module's user.
    """
    return _act("revoke", ids, options, reason=reason)


@click.command()
@place_options
@_REASON
@TASK_IDS
def move(ids: tuple[str, ...], *, reason: str, **options: Unpack[PlaceOptions]) -> int:
    """As `revoke`, and the machines accept no task of that user and shape for the `bar` of their policies (1 min).

    A task that no other machine accepts waits, and may run there again afterwards.
    """
    return _act("move", ids, options, reason=reason)


@click.command()
@place_options
@_REASON
@TASK_IDS
def hold(ids: tuple[str, ...], *, reason: str, **options: Unpack[PlaceOptions]) -> int:
    """Let tasks or arrays that wait get no place until `release`, also across restarts; only at their origin.

    A running attempt continues; `revoke` after `hold` ends it too. A deadline is not extended.
    """
    return _act("hold", ids, options, reason=reason)


@click.command()
@place_options
@_REASON
@TASK_IDS
def release(ids: tuple[str, ...], *, reason: str, **options: Unpack[PlaceOptions]) -> int:
    """End the hold of tasks, of arrays, or of single members of an array on hold: they search for a place again."""
    return _act("release", ids, options, reason=reason)


def _act(act: str, ids: tuple[str, ...], options: PlaceOptions, *, reason: str) -> int:
    done, code = done_for_each(ids, options, act=lambda module, name: module.act_by_hand(name, act, reason=reason))
    if options["as_json"]:
        print_document({"tasks": done})
    else:
        for document in done:
            print_text(document["id"] if options["quiet"] else _line(act, document))
    return code


def _line(act: str, document: Document) -> str:
    """Return what was done, with the attempts that it concerns."""
    attempts = document["attempts"]
    several = f"{len(attempts)} attempts of {document['id']}"
    which, verb = (attempts[0], "is") if len(attempts) == 1 else (several, "are")
    match act:
        case "revoke" | "move":
            return f"{which} {verb} being {'revoked' if act == 'revoke' else 'moved'}"
        case "hold" if attempts:
            runs = "runs" if len(attempts) == 1 else "run"
            return f"{document['id']} is on hold; {which} {runs} on (`messiahs task revoke` ends that, too)"
        case "hold":
            return f"{document['id']} is on hold"
        case _:
            return f"{document['id']} is released"
