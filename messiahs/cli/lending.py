"""`messiahs lend`: the owner of a machine lends it to others, or takes it back."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import local_time, print_document, print_text
from messiahs.cli.times import coming_time
from messiahs.client.connection import Document
from messiahs.client.lending import Position, lending, turn
from messiahs.client.locating import locate_module
from messiahs.core.model.texts import printable


@click.command()
@click.argument("position", type=click.Choice(("on", "off", "policy")), metavar="[on|off|policy]", required=False)
@click.option("--until", type=coming_time, metavar="TIME", help="End it at 18:00, 2026-01-31 or 2026-01-31T18:00.")
@MODULE
@STATE
@JSON
def lend(
    *, position: Position | None, until: int | None, module: str | None, state: Path | None, as_json: bool
) -> None:
    """Lend the own machine to others or take it back, or without a word show what holds.

    `off` refuses tasks of other modules and suspends those that run here, whatever the policy says, until `lend on` or
    `lend policy`; tasks of this module's users go on. `policy` leaves it to the policy alone, as at first. `on` does
    so too, and the policy may read that you have said it ($here.lent). With --until, `off` ends in `policy`, and `on`,
    which may be left out, in `off`. Root, the user of the module, and the account at the console may do this.
    """
    place = locate_module(module, state=state)
    if until is not None and position == "policy":
        raise click.UsageError("`lend policy` has no end, so it takes no --until")
    if position is None and until is None:
        found = lending(place.socket)
    else:
        found = turn(place.socket, position or "on", until_seconds=until)
    if as_json:
        print_document(found)
    else:
        print_text(printable(f"{found['name']} {dial_text(found['lend'])}"))


def dial_text(dial: Document) -> str:
    """Return what a position of the dial means, with its end in local time, without the name of the module."""
    until = f" until {local_time(dial['until'])}" if dial["until"] is not None else ""
    match dial["position"]:
        case "off":
            return f"is not lent to others{until or ' until `messiahs lend on` or `messiahs lend policy`'}"
        case "on":
            then = ", and then not lent to others" if until else ""
            return f"is lent as its policy says{until}{then}"
        case _:
            return "is lent as its policy says: its owner has said nothing else"


def maintenance_text(announced: Document) -> str:
    """Return when an announced drain begins, in local time, and why, without the name of the module."""
    why = f" ({announced['reason']})" if announced["reason"] else ""
    return f"is away for maintenance from {local_time(announced['begins'])}{why}"
