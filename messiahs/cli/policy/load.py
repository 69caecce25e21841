"""`messiahs policy load` and `messiahs module policy`: change and show the policy of a running module."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_text
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
    """Load the policy in FILE into a running module, or without FILE reload the module's own policy file.

    A loaded FILE stays in force, also after a restart, until `policy load` without FILE (or SIGHUP) returns to the
    module's own file. A file with mistakes changes nothing and exits with 1. Only root and the user of the module may
    use this command.
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
            print_text(problem["text"], err=True)
        refused = f"{place.module}: nothing has changed: " if problems else f"{place.module}: "
        print_text(refused + _text_of(document))
    return 1 if problems else 0


@click.command("policy")
@MODULE
@STATE
@JSON
def show_policy(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show the policy of a module, its hash, and since when it is in force."""
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        document = client.policy()
    if as_json:
        print_document(document)
    else:
        print_text(f"{place.module}: {_text_of(document)}")


def _text_of(document: Document) -> str:
    if not document["file"]:
        return "no policy file; every task is accepted"
    own = document["own_file"] or "no policy file"
    until = f"; it replaces {own}, and `messiahs policy load` returns to that" * document["loaded"]
    return (
        f'policy "{document["name"]}" in {document["file"]}, SHA-256 {document["sha256"]}, '
        f"is in force since {document['since']}{until}"
    )
