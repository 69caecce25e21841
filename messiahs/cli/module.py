"""`messiahs module …`: run one module in production, list modules, show a module's vectors."""

import os
import sys
from pathlib import Path

import click

from messiahs.cli.loading import show_policy
from messiahs.cli.options import JSON, MODULE, QUIET, STATE
from messiahs.cli.output import print_document, print_table
from messiahs.cli.previewing import preview, vector_lines
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, known_modules, locate_module, state_directory
from messiahs.client.module import ModuleClient


@click.group()
def module() -> None:
    """Run scheduling modules and look at them."""


module.add_command(show_policy)
module.add_command(preview)


@module.command("run")
@click.argument("name")
@click.option("--topology", "topology_file", type=click.Path(path_type=Path), required=True, help="The topology file.")
@STATE
def run_module(name: str, *, topology_file: Path, state: Path | None) -> None:
    """Run the module NAME of a topology here, at its host and port, until it is told to end.

    The first run makes a root key for this site, STATE/FEDERATION/tls/root.pem and root.key; every module of the
    site is run with the same STATE, or with its own certificate by that root. Two sites that are to be linked
    exchange their root.pem by hand (never root.key) over a way that both trust: each lists the other's system as
    `external: true` with `trust: FILE`, the copy. They use the same `federation` name.
    """
    from messiahs.cli.deployment import federation_directory, prepare_one
    from messiahs.config.topology_reading import load_topology
    from messiahs.daemon.hangup import hold_hangups

    # The daemon hears of it.
    hold_hangups()
    topology = load_topology(topology_file)
    directory = federation_directory(state_directory(state), topology.federation)
    file = prepare_one(topology, name, directory=directory)
    os.chdir(directory)
    command = [sys.executable, "-m", "messiahs.daemon", str(file)]
    os.execv(sys.executable, command)  # noqa: S606 # the daemon takes this process over


@module.command("list")
@STATE
@JSON
@QUIET
def list_modules(*, state: Path | None, as_json: bool, quiet: bool) -> None:
    """List every module under the state directory, running or not."""
    modules = [found for place in known_modules(state_directory(state)) if (found := _described(place))]
    if as_json:
        print_document({"modules": modules})
    elif quiet:
        for found in modules:
            click.echo(found["name"])
    else:
        header = ("NAME", "FEDERATION", "PROCESS", "ADDRESS", "MACHINE", "PARENTS", "CHILDREN", "SIBLINGS")
        print_table(header, [_row(found) for found in modules])


@module.command()
@MODULE
@STATE
@JSON
def vectors(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show the sums that a module sends, and its views of its neighbors."""
    with ModuleClient(locate_module(module, state=state).socket) as client:
        document = client.vectors()
    if as_json:
        print_document(document)
        return
    for kind in ("up", "down", "sibling"):
        _show(kind, document[kind])
    for neighbor, view in document.get("views", {}).items():
        _show(f"view of {neighbor} ({view.get('relation')})", view)


def _show(title: str, vector: Document) -> None:
    for line in vector_lines(title, vector):
        click.echo(line)


def _described(place: ModulePlace) -> Document | None:
    """Give what the settings say of a module, and its process if it runs; None if it has no settings."""
    from messiahs.config.settings import load_settings
    from messiahs.daemon.recorded import recorded_process

    file = place.directory / "settings.json"
    if not file.exists():
        return None
    settings = load_settings(file)
    process = recorded_process(place.directory / "daemon.pid")
    neighbors = [link.neighbor for link in settings.neighbors]
    return {
        "name": settings.name,
        "federation": settings.federation,
        "pid": None if process is None else process.pid,
        "address": settings.listen,
        "machine": settings.machine is not None,
        "parents": [other.system for other in neighbors if other.is_parent],
        "primary_parent": next((other.system for other in neighbors if other.is_primary_parent), None),
        "children": [other.system for other in neighbors if other.is_child],
        "siblings": [other.system for other in neighbors if other.is_sibling],
    }


def _row(found: Document) -> tuple[str, ...]:
    return (
        found["name"],
        found["federation"],
        "down" if found["pid"] is None else str(found["pid"]),
        found["address"],
        "yes" if found["machine"] else "no",
        *(", ".join(found[relation]) or "-" for relation in ("parents", "children", "siblings")),
    )
