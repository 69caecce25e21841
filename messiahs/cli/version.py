"""`messiahs version`: print the installed release."""

import click

from messiahs import __version__
from messiahs.cli.output import print_document, print_text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def version(*, as_json: bool) -> None:
    """Print the installed release."""
    if as_json:
        print_document({"release": __version__})
    else:
        print_text(f"messiahs {__version__}")
