"""`messiahs policy load` and `messiahs module policy`: which policy a module follows, and another one in its place."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document
from messiahs.cli.policy.problems import problems_as_json
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@MODULE
@STATE
@JSON
def load(file: Path | None, *, module: str | None, state: Path | None, as_json: bool) -> int:
    """Let a running module follow the policy in FILE, or without FILE its own policy file, which is read again.

    What FILE says holds also after a restart, until `policy load` without FILE (or SIGHUP) goes back to the own file.
    With mistakes in it nothing changes, and the exit code is 1. Only root and the user of the module may.
    """
    from messiahs.config.policies import policy_text

    with problems_as_json(as_json=as_json):
        text = None if file is None else policy_text(file)
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        document = client.load_policy(text, file="" if file is None else str(file.absolute()))
    problems = document["problems"]
    if as_json:
        print_document(document)
    else:
        for problem in problems:
            click.echo(problem["text"], err=True)
        refused = f"{place.module}: nothing has changed: " if problems else f"{place.module}: "
        click.echo(refused + _told(document))
    return 1 if problems else 0


@click.command("policy")
@MODULE
@STATE
@JSON
def show_policy(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show which policy a module follows, with its hash, and since when."""
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        document = client.policy()
    if as_json:
        print_document(document)
    else:
        click.echo(f"{place.module}: {_told(document)}")


def _told(document: Document) -> str:
    if not document["file"]:
        return "no policy file, everybody is accepted"
    own = document["own_file"] or "no policy file"
    until = f"; it was loaded in place of {own}, and `messiahs policy load` goes back to that" * document["loaded"]
    return (
        f'policy "{document["name"]}" in {document["file"]}, SHA-256 {document["sha256"]}, '
        f"is in force since {document['since']}{until}"
    )
