"""`messiahs module tasks` and `messiahs module revoke`: what runs on a machine, and how its administrator ends it."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, QUIET, STATE
from messiahs.cli.output import print_document, print_table
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient


@click.command("tasks")
@MODULE
@STATE
@JSON
@QUIET
def list_attempts(*, module: str | None, state: Path | None, as_json: bool, quiet: bool) -> None:
    """List what runs or waits on a module's machine, whoever submitted it.

    Only root and the user of the module may.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        attempts = client.attempts()
    if as_json:
        print_document({"attempts": attempts})
    elif quiet:
        for attempt in attempts:
            click.echo(attempt["attempt"])
    else:
        header = ("ATTEMPT", "STATE", "USER", "VIA", "SLOTS", "SINCE")
        print_table(header, [_row(attempt) for attempt in attempts])


@click.command()
@click.argument("name", metavar="ATTEMPT_OR_TASK")
@click.option("--kill", is_flag=True, help="End it at once, without the grace of the policy.")
@click.option("--reason", default="", metavar="TEXT", help="What its origin and its user are told.")
@MODULE
@STATE
@JSON
def revoke(name: str, *, kill: bool, reason: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """End what runs on a module's machine, such as blays.17.3, blays.17 (all of an array) or blays.17.3#2 (an attempt).

    It gets SIGTERM, and SIGKILL after the policy's kill_grace. Its origin lets the task run elsewhere. This machine
    takes no task of that user and shape for a minute. Only root and the user of the module may.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        revoked = client.revoke(name, kill=kill, reason=reason)
    if as_json:
        print_document({"revoked": revoked})
    else:
        for attempt in revoked:
            click.echo(f"{attempt} is being {'killed' if kill else 'vacated'}")


def _row(attempt: Document) -> tuple[str, ...]:
    since = attempt["started_at"] or attempt["taken_at"]
    return (
        attempt["attempt"],
        attempt["substate"] or "-",
        attempt["user"] or "-",
        attempt["via"],
        str(attempt["slots"]),
        since or "-",
    )
