"""`messiahs module preview`: what a neighbor sees of a module, and what it would see under another policy."""

from collections.abc import Iterator
from difflib import ndiff
from pathlib import Path

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document
from messiahs.cli.policy.problems import problems_as_json
from messiahs.client.connection import Document
from messiahs.core.model.texts import printable

_KINDS = {"for_parents": "as a parent", "for_children": "as a child", "for_siblings": "as a sibling"}

_NAMES_THAT_STAY = (
    "that name stands in denials only: claims, `executed_on`, $origin and $user carry the names of systems and users"
)


@click.command()
@click.argument("peer")
@MODULE
@STATE
@JSON
@click.option("--policy", "file", type=click.Path(path_type=Path), help="Compare with what it would see under FILE.")
def preview(peer: str, *, module: str | None, state: Path | None, as_json: bool, file: Path | None) -> None:
    """Show exactly what the neighbor PEER is told of this module: computed now, by the code that sends it.

    With --policy lines with `-` are seen now only, those with `+` under FILE only; how old each part is changes all the
    time, and is left out.
    """
    from messiahs.client.locating import locate_module
    from messiahs.client.module import ModuleClient
    from messiahs.config.policies import policy_source
    from messiahs.core.interface.policies import Timeouts

    with problems_as_json(as_json=as_json):
        source = policy_source(file, timeouts=Timeouts())
        source.policy()
    text = source.text
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        document = client.preview(peer, text=text, file="" if file is None else str(file.absolute()))
    if as_json:
        print_document(document)
        return
    click.echo(f"what {place.module} tells {document['neighbor']} ({document['relation']})")
    lines = list(_sight_lines(document["now"], has_ages=file is None))
    if file is not None:
        # Lines with `?` point at characters, and are for those who compare texts.
        compared = ndiff(lines, list(_sight_lines(document["under"], has_ages=False)))
        lines = [line for line in compared if not line.startswith("?")]
    for line in lines:
        click.echo(printable(line))
    if any(document[sight]["name"] != place.module for sight in ("now", "under") if sight in document):
        click.echo(_NAMES_THAT_STAY)


def vector_lines(title: str, vector: Document) -> Iterator[str]:
    """Give a vector for people: a line for each class below a title."""
    yield f"{title}: {vector['machines']} machines"
    for machine_class in vector["classes"]:
        said, lacking = sorted(machine_class["attributes"].items()), machine_class["some_lack"]
        told = " ".join(f"{name}={_shown(value)}{'?' * (name in lacking)}" for name, value in said)
        yield f"  {machine_class['count']} x {told}".rstrip()


def _sight_lines(sight: Document, *, has_ages: bool) -> Iterator[str]:
    yield f"it sees denials under the name {sight['name']}"
    for vector in sight["vectors"]:
        told = [f"tasks waiting: {vector['waiting']}"] + [f"age {vector['age']:g} s"] * has_ages
        told += [f"every {vector['period']:g} s"]
        told += [f"hears {', '.join(vector['hears'])}"] * bool(vector["hears"])
        yield from vector_lines(f"{_KINDS[vector['kind']]} ({', '.join(told)})", vector)


def _shown(value: object) -> str:
    if isinstance(value, list):
        low, high = value
        return str(low) if low == high else f"{low}..{high}"
    return "various" if value is None else str(value)
