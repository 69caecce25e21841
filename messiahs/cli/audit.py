"""`messiahs audit log`: what crossed the links with neighbors under another administration."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from messiahs.cli.options import DURATION, JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_table
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.errors import ClientError

_HEADER = ("SINCE", "LATEST", "NEIGHBOR", "WAY", "WHAT", "COUNT", "BY", "SHOWN AS", "BYTES IN", "BYTES OUT", "RESULT")


@click.group()
def audit() -> None:
    """Read the audit log of a module."""


@audit.command()
@click.option("--since", type=DURATION, metavar="TIME", help="Only what changed in the last TIME: 90min, 7d.")
@click.option("--neighbor", default="", metavar="NAME", help="Only what crossed the link with NAME.")
@MODULE
@STATE
@JSON
def log(*, since: int | None, neighbor: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show what crossed the links with other sites: one line for a submission, neighbor and direction.

    `in` are tasks, requests and messages from the neighbor, `out` those that went there. Only root and the user of the
    module may use this command.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        rows = [row for row in client.audit() if neighbor in ("", row["neighbor"])]
        known = [each["name"] for each in client.neighbors()]
    if neighbor and not rows and neighbor not in known:
        raise ClientError(f"{neighbor} is no neighbor of {place.module}, which has {', '.join(known)}")
    if since is not None:
        earliest = datetime.now(UTC) - timedelta(seconds=since)
        rows = [row for row in rows if datetime.fromisoformat(row["latest_at"]) >= earliest]
    if as_json:
        print_document({"rows": rows})
        return
    print_table(_HEADER, [_row(row) for row in rows])


def _row(row: Document) -> tuple[str, ...]:
    seen = (row["began_at"][:19], row["latest_at"][:19], row["neighbor"], row["direction"])
    if row["what"] == "spliced":
        moved = (str(row["in_bytes"]), str(row["out_bytes"]))
        return (*seen, "spliced", str(row["count"]), "-", "-", *moved, f"unread, with {row['code']}")
    if row["what"] != "tasks":
        return (*seen, row["what"], str(row["count"]), "-", "-", "-", "-", row["code"] or row["text"] or "-")
    here = f"{row['user']} {row['submission']}"
    shown = f"{row['shown_user']} {row['shown_submission']}"
    # Inputs go with the tasks, outputs come back.
    incoming, outgoing = row["input_bytes"], row["output_bytes"]
    if row["direction"] == "out":
        incoming, outgoing = outgoing, incoming
    ended = ", ".join(f"{count} {state}" for state, count in row["ended"].items())
    crossed = ("-" if shown == here else shown, str(incoming), str(outgoing))
    return (*seen, "tasks", str(row["count"]), here, *crossed, ended or "-")
