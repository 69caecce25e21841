"""`messiahs module preview`: what a neighbor receives from a module, now and under another policy."""

from collections.abc import Iterator
from difflib import ndiff
from pathlib import Path

import click

from messiahs.cli.demand import lacked
from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.cli.policy.problems import problems_as_json
from messiahs.client.connection import Document
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, Unit
from messiahs.core.model.counts import counted
from messiahs.core.model.task_limits import size_text
from messiahs.core.model.texts import printable

_KINDS = {"for_parents": "as a parent", "for_children": "as a child", "for_siblings": "as a sibling"}

_SHARE_STEPS = 100
_NAMES_THAT_STAY = (
    "that name is used in denials only: claims, `executed_on`, $origin and $user carry the names of systems and users"
)


@click.command()
@click.argument("peer")
@MODULE
@STATE
@JSON
@click.option("--policy", "file", type=click.Path(path_type=Path), help="Compare with what FILE would send.")
def preview(peer: str, *, module: str | None, state: Path | None, as_json: bool, file: Path | None) -> None:
    """Show exactly what this module sends to the neighbor PEER, computed now by the code that sends it.

    With --policy, `-` marks lines sent now only and `+` marks lines sent under FILE only. Ages change all the time and
    are left out.
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
    print_text(f"what {place.module} sends to {document['neighbor']} ({document['relation']})")
    lines = list(_sight_lines(document["now"], has_ages=file is None))
    if file is not None:
        # Lines with `?` mark single characters, for comparisons of prose.
        compared = ndiff(lines, list(_sight_lines(document["under"], has_ages=False)))
        lines = [line for line in compared if not line.startswith("?")]
    for line in lines:
        print_text(printable(line))
    if any(document[sight]["name"] != place.module for sight in ("now", "under") if sight in document):
        print_text(_NAMES_THAT_STAY)


def vector_lines(title: str, vector: Document) -> Iterator[str]:
    """Yield a vector for people: a title, then a line for each class."""
    yield f"{title}: {counted(vector['machines'], 'machine')}"
    for machine_class in vector["classes"]:
        attributes, lacking = sorted(machine_class["attributes"].items()), machine_class["some_lack"]
        text = ", ".join(f"{_shown(name, value)}{' (not all)' * (name in lacking)}" for name, value in attributes)
        yield f"  {machine_class['count']} x {text}".rstrip()


def _sight_lines(sight: Document, *, has_ages: bool) -> Iterator[str]:
    yield f"name in denials: {sight['name']}"
    for vector in sight["vectors"]:
        facts = [f"tasks waiting: {vector['waiting']}"] + [f"age {vector['age']:g} s"] * has_ages
        facts += [f"every {vector['period']:g} s"]
        facts += [f"hears {', '.join(vector['hears'])}"] * bool(vector["hears"])
        facts += [f"{each['module']} is not linked with {each['neighbor']}" for each in vector["missing"]]
        yield from vector_lines(f"{_KINDS[vector['kind']]} ({', '.join(facts)})", vector)
        for each in (vector["demand"] or {"classes": ()})["classes"]:
            text = f"{counted(each['tasks'], 'task')}, {counted(each['processors'], 'processor')}"
            yield f"  unmet demand: {lacked(each)} ({text})"


def _shown(name: str, value: object) -> str:
    """Return an attribute of machines with its values, in the unit that people use."""
    if value is None:
        return f"{name} various"
    if not isinstance(value, list):
        return f"{name} {value}"
    low, high = value
    known = MACHINE_ATTRIBUTES.get(name)
    texts = [_in_unit(each, known.unit if known is not None else Unit.NONE) for each in (low, high)]
    if low == high or texts[0] == texts[1]:
        return f"{name} {texts[0]}"
    (least, unit), (_, same) = (text.rpartition(" ")[::2] for text in texts)
    return f"{name} {least if unit == same else texts[0]} to {texts[1]}"


def _in_unit(value: int, unit: Unit) -> str:
    match unit:
        case Unit.BYTES:
            number, _, name = size_text(value).partition(" ")
            return f"{float(number):.4g} {name}"
        case Unit.SHARE:
            return f"{value / _SHARE_STEPS:.0f} %"
        case Unit.SECONDS:
            return f"{value} s"
        case _:
            return str(value)
