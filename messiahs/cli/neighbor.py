"""`messiahs neighbor …`: the links of a module, and shutting a neighbor off."""

from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient

_REASON = click.option("--reason", default="", metavar="TEXT", help="Kept in the log and the audit log of this module.")


@click.group()
def neighbor() -> None:
    """List the neighbors of a module, shut one off, readmit it."""


@neighbor.command("list")
@MODULE
@STATE
@JSON
def list_neighbors(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """List the neighbors of a module, and why those without a link have none."""
    with ModuleClient(locate_module(module, state=state).socket) as client:
        neighbors = client.neighbors()
    if as_json:
        print_document({"neighbors": neighbors})
        return
    print_table(("NEIGHBOR", "RELATION", "DIALED AT", "STATE", "WHY"), [_row(each) for each in neighbors])


@neighbor.command()
@click.argument("name", metavar="NEIGHBOR")
@_REASON
@MODULE
@STATE
def off(name: str, *, reason: str, module: str | None, state: Path | None) -> None:
    """Shut NEIGHBOR off, at once and until `neighbor on`, also across restarts.

    Its tasks here are killed. Tasks of this module that are there begin again elsewhere when their leases have expired,
    since they may still run until then. Bytes in transit stop, and no search goes there. NEIGHBOR learns the code
    `shut_off`, never the reason. Only root and the user of the module may use this command.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        client.shut_off(name, reason=reason)
    print_text(f"{place.module} has shut {name} off")


@neighbor.command()
@click.argument("name", metavar="NEIGHBOR")
@_REASON
@MODULE
@STATE
def on(name: str, *, reason: str, module: str | None, state: Path | None) -> None:
    """Readmit NEIGHBOR after `neighbor off`, or after it was removed although the topology file lists it.

    A removal has two ends, and this is for one of them: repeat it at NEIGHBOR. If the file there does not list this
    module, as after a join, a token of NEIGHBOR brings it back. Only root and the user of the module may use this.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        was_removed = all(each["name"] != name for each in client.neighbors())
        client.readmit(name, reason=reason)
    print_text(f"{place.module} admits {name}{_other_end(name, place.module) if was_removed else ''}")


def _other_end(name: str, module: str) -> str:
    """Return what ends a removal at the neighbor, whose file this module does not know."""
    here = f"the removal ended the link at {name} as well: if the file there lists {module}, type"
    there = f"`messiahs neighbor on {module}` there, too; if {module} joined with a token, get a new one there and type"
    return f"; {here} {there} `messiahs module parent add` here"


def _row(found: Document) -> tuple[str, ...]:
    since = f"since {found['shut_off_since']}: " if found["shut_off_since"] else ""
    # Daemons of earlier releases throttle nobody.
    throttled = "it sends more than its share, and is throttled" if found.get("throttled") else ""
    return (
        found["name"],
        found["relation"] or "-",
        found["dialed_at"] or "-",
        found["state"],
        f"{since}{found['text'] or found['reason'] or throttled}" or "-",
    )
