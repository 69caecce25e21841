"""`messiahs module tasks` and `messiahs module revoke`: list the attempts on a machine, and end some of them."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, QUIET, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient


@click.command("tasks")
@MODULE
@STATE
@JSON
@QUIET
def list_attempts(*, module: str | None, state: Path | None, as_json: bool, quiet: bool) -> None:
    """List the attempts that run or wait on a module's machine, from every origin.

    Only root and the user of the module may use this command.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        attempts = client.attempts()
    if as_json:
        print_document({"attempts": attempts})
    elif quiet:
        for attempt in attempts:
            print_text(attempt["attempt"])
    else:
        header = ("ATTEMPT", "STATE", "USER", "VIA", "SLOTS", "SINCE")
        print_table(header, [_row(attempt) for attempt in attempts])


@click.command()
@click.argument("name", metavar="ATTEMPT_OR_TASK")
@click.option("--kill", is_flag=True, help="End it at once, ignoring the policy's kill_grace.")
@click.option("--reason", default="", metavar="TEXT", help="Text reported to its origin and its user.")
@MODULE
@STATE
@JSON
def revoke(name: str, *, kill: bool, reason: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """End attempts on a module's machine: blays.17 (a whole array), blays.17.3 (a task), blays.17.3#2 (an attempt).

    An attempt gets SIGTERM, and SIGKILL after the policy's kill_grace. Its origin then runs the task elsewhere. This
    machine accepts no task of the same user and shape for a minute. Only root and the user of the module may use this
    command.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        revoked = client.revoke(name, kill=kill, reason=reason)
    if as_json:
        print_document({"revoked": revoked})
    else:
        for attempt in revoked:
            print_text(f"{attempt} is being {'killed' if kill else 'vacated'}")


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
