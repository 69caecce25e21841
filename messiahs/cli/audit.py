"""`messiahs audit`: what was decided, what crossed links with other sites, and whether all sums are right."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, Unpack

import click

from messiahs.cli.audit_vectors import vectors
from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_json, print_table, print_text
from messiahs.cli.times import past_time
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError


class _Wanted(TypedDict):
    """Options of `audit decisions`."""

    task: str
    neighbor: str
    user: str
    since: datetime | None
    kind: str | None
    follow: bool
    as_json: bool


_HEADER = ("SINCE", "LATEST", "NEIGHBOR", "WAY", "WHAT", "COUNT", "BY", "SHOWN AS", "BYTES IN", "BYTES OUT", "RESULT")


@click.group()
def audit() -> None:
    """Read the audit log of a module, and audit the sums of a federation."""


audit.add_command(vectors)


@audit.command()
@click.option("--task", default="", metavar="ID", help="Only about a task, an array or an attempt.")
@click.option("--neighbor", default="", metavar="NAME", help="Only for or by NAME.")
@click.option("--user", default="", metavar="USER", help="Only what USER decided, and about tasks of a USER.")
@click.option("--since", type=past_time, metavar="TIME", help="Only since 90min or 7d ago, or 2026-01-31.")
@click.option("--kind", type=click.Choice(("task", "policy", "member", "audit")), help="Only about these.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing what is decided from now on.")
@MODULE
@STATE
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, as they are stored.")
def decisions(*, module: str | None, state: Path | None, **options: Unpack[_Wanted]) -> None:
    """Show what the module decided about tasks, policies and members, in the order of time, a line for each.

    A line has when, what, who, about what, and why. Users other than root and the user of the module see what was
    decided about their tasks.
    """
    since, as_json, follow = options["since"], options["as_json"], options["follow"]
    wanted = {name: str(options[name] or "") for name in ("task", "neighbor", "user", "kind")}
    if since is not None:
        wanted["since"] = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        if wanted["neighbor"]:
            _check_neighbor(client, wanted["neighbor"], own=place.module)
        for line in client.decisions(follow=follow, **wanted):
            if as_json:
                print_json(line)
            else:
                print_text(printable(_text_of(line)))


@audit.command()
@click.option("--since", type=past_time, metavar="TIME", help="Only what changed since 90min or 7d ago, or 2026-01-31.")
@click.option("--neighbor", default="", metavar="NAME", help="Only what crossed the link with NAME.")
@MODULE
@STATE
@JSON
def log(*, since: datetime | None, neighbor: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show what crossed the links with other sites: one line for a submission, neighbor and direction.

    `in` are tasks, requests and messages from the neighbor, `out` those that went there. Only root and the user of the
    module may use this command.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        rows = [row for row in client.audit() if neighbor in ("", row["neighbor"])]
        known = [each["name"] for each in client.neighbors()]
    if neighbor and not rows and neighbor not in known:
        raise ClientError(f"{neighbor} is no neighbor of {place.module}, which has {', '.join(known) or 'none'}")
    if since is not None:
        rows = [row for row in rows if datetime.fromisoformat(row["latest_at"]) >= since]
    if as_json:
        print_document({"rows": rows})
        return
    print_table(_HEADER, [_row(row) for row in rows])


def _check_neighbor(client: ModuleClient, name: str, *, own: str) -> None:
    """Raise a `ClientError` for a name of no neighbor, present or removed, about which nothing was decided either."""
    known = [each["name"] for each in (*client.neighbors(), *client.removed())]
    if name not in known and next(client.decisions(neighbor=name), None) is None:
        has = ", ".join(known) or "none"
        raise ClientError(f"{own} has decided nothing about a neighbor {name}; its neighbors are {has}")


def _text_of(line: Document) -> str:
    """Return a decision on one line: time, what, its author, whose task, with whom, about what, and why."""
    count = f"{line['count']} more since {line['since'][:19]}" if line.get("count") else ""
    user, origin = line.get("user", ""), line.get("origin", "")
    parts = {
        "by": line.get("by", ""),
        "tasks": " ".join(line.get("tasks", ())),
        "of": f"{user} at {origin}" if user and origin else user or origin,
        "neighbor": line.get("neighbor", ""),
        "about": line.get("about", "") if line.get("about") != line.get("neighbor") else "",
        "code": line.get("code", ""),
        "why": line.get("why", ""),
    }
    said = (f"{name} {text}" for name, text in parts.items() if text)
    return "  ".join((line["at"][:23] + "Z", line["kind"], line["what"], *filter(None, (count,)), *said))


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
