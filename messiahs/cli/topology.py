"""`messiahs topology …`: check and draw topology files."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON, STATE, TOPOLOGY
from messiahs.cli.output import print_document
from messiahs.errors import TopologyError

if TYPE_CHECKING:
    from messiahs.config.settings import TrustedFile
    from messiahs.config.topology.topology import System, Topology


@click.group()
def topology() -> None:
    """Check and draw topology files."""


@topology.command()
@TOPOLOGY
@STATE
@JSON
def check(topology_file: Path, *, state: Path | None, as_json: bool) -> int:
    """Check TOPOLOGY and list every problem with its line and column; exit with 1 if there is one.

    With the state directory of the site's modules, a root of another site that is a copy of the own one is a problem,
    too. Warns about extensions that a policy reads and no system sets, about machines without the `console` that a
    policy needs, and about external systems without `trust`.
    """
    from messiahs.client.locating import state_directory
    from messiahs.config.topology.consoles import warnings_of_consoles
    from messiahs.config.topology.fields import warnings_of_fields
    from messiahs.config.topology.reading import load_topology
    from messiahs.config.topology.trust import problems_with_copies, warnings_of_externals

    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    try:
        loaded = load_topology(topology_file, reads_trust=True)
        warnings = (*warnings_of_fields(loaded), *warnings_of_consoles(loaded), *warnings_of_externals(loaded))
        problems = problems_with_copies(loaded, state_directory(state) / loaded.federation / "tls" / "root.pem")
    except TopologyError as error:
        problems = error.problems
    if as_json:
        print_document({"problems": list(problems), "warnings": list(warnings)})
        return 1 if problems else 0
    for warning in warnings:
        click.echo(warning, err=True)
    if problems:
        raise TopologyError(problems)
    externals = f", {len(loaded.externals)} of them external" if loaded.externals else ""
    click.echo(f"{topology_file}: {len(loaded.systems)} systems{externals}, no problems")
    return 0


@topology.command()
@TOPOLOGY
@JSON
def show(topology_file: Path, *, as_json: bool) -> None:
    """Draw TOPOLOGY as a tree with every system under its primary parent."""
    from messiahs.config.topology.reading import load_topology

    loaded = load_topology(topology_file)
    if as_json:
        print_document(
            {
                "federation": loaded.federation,
                "introductions": [_roots(each) for each in loaded.introductions],
                "systems": {system.name: _facts(system) for system in loaded.systems},
            }
        )
        return
    click.echo(loaded.federation)
    for line in _branches(loaded, None, ""):
        click.echo(line)
    for each in loaded.introductions:
        click.echo(f"introduction: {_vouching(each)}")


def _facts(system: "System") -> dict[str, object]:
    return {
        "machine": system.machine is not None,
        "parents": list(system.parents),
        "primary_parent": system.primary_parent,
        "host": system.host,
        "port": system.port,
        "reach": system.reach,
        "external": system.is_external,
        "trust": [_roots(each) for each in system.trust],
        "policy": None if system.policy_file is None else str(system.policy_file),
    }


def _roots(recorded: "TrustedFile") -> dict[str, object]:
    return {"file": str(recorded.file), "names": list(recorded.names)}


def _vouching(recorded: "TrustedFile") -> str:
    return f"{recorded.file.name} vouches for {', '.join(recorded.names)}"


def _branches(loaded: "Topology", above: str | None, indent: str) -> Iterator[str]:
    below = [system for system in loaded.systems if system.primary_parent == above]
    for position, system in enumerate(below, start=1):
        is_last = position == len(below)
        notes = "; ".join(_notes(system))
        suffix = f" ({notes})" if notes else ""
        yield f"{indent}{'└─' if is_last else '├─'} {system.name}{suffix}"
        yield from _branches(loaded, system.name, f"{indent}{'   ' if is_last else '│  '}")


def _notes(system: "System") -> Iterator[str]:
    if system.is_external:
        yield "external"
    yield from map(_vouching, system.trust)
    if system.machine is not None:
        yield "machine"
    others = ", ".join(parent for parent in system.parents if parent != system.primary_parent)
    if others:
        yield f"also under {others}"
    if system.address is not None:
        yield f"at {system.address}"
    if system.reach != "open":
        yield f"reach {system.reach}"
    if system.policy_file is not None:
        yield f"policy {system.policy_file.name}"
