"""`messiahs topology diff`: what a change of a topology means for each system."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON
from messiahs.cli.output import print_document, print_text

if TYPE_CHECKING:
    from messiahs.config.topology.differences import Difference, TopologyDifferences

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@JSON
def diff(old: Path, new: Path, *, as_json: bool) -> int:
    """Show for each system what changes from the topology OLD to NEW; exit with 0 if nothing does, else with 1.

    `topology apply` takes over most changes while a module runs; those marked `restart` wait for its next start. Files
    with the same content count as equal wherever they lie. An invalid file is exit code 2.
    """
    from messiahs.config.topology.differences import topology_differences
    from messiahs.config.topology.reading import load_topology
    from messiahs.errors import ClientError, MessiahsError

    try:
        found = topology_differences(load_topology(old), load_topology(new))
    except MessiahsError as error:
        raise ClientError(str(error), code=2) from error
    if as_json:
        print_document(_document(found))
    else:
        for line in _lines(found):
            print_text(line)
    return 1 if found else 0


def line_of(difference: "Difference") -> str:
    """Return one line about a difference, marked if it waits for a restart."""
    return f"{difference}{' (restart)' if difference.needs_restart else ''}"


def document_of(difference: "Difference") -> dict[str, object]:
    """Return the document of a difference; a value that is not there is null."""
    return {
        "subject": difference.subject.value,
        "neighbor": difference.neighbor or None,
        "old": difference.old or None,
        "new": difference.new or None,
        "needs_restart": difference.needs_restart,
    }


def _lines(found: "TopologyDifferences") -> Iterator[str]:
    before, after = found.federations
    if before != after:
        yield f"another federation: {before} -> {after}"
    yield from (f"{name}: new" for name in found.gained)
    yield from (f"{name}: gone" for name in found.lost)
    for name, changes in found.changed.items():
        yield f"{name}:"
        yield from (f"  {line_of(each)}" for each in changes)


def _document(found: "TopologyDifferences") -> dict[str, object]:
    return {
        "federation": {"old": found.federations[0], "new": found.federations[1]},
        "gained": list(found.gained),
        "lost": list(found.lost),
        "changed": {name: [document_of(each) for each in changes] for name, changes in found.changed.items()},
    }
