"""`messiahs module explain`: why a machine gets no work, or what work it gets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import local_time, print_document, print_text, with_local_times
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.core.model.counts import counted
from messiahs.core.model.texts import printable

_AS: Final = {"for_parents": "as a parent", "for_children": "as a child", "for_siblings": "as a sibling"}
_SIZES: Final = ("cpus", "mem", "disk", "est_time", "user")
"""What the example of a refused task says first."""


@click.command("explain")
@MODULE
@STATE
@JSON
def explain_module(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show why the machine of a module gets no work, or what work it gets, and what would have to change.

    That is what its neighbors are told of it and when they were told last, who asked it for places, what refused them
    with an example and the values found, and how many of the tasks it could run. It counts for one to two hours, from
    the start of the module or of its policy on. Only root and the user of the module may use this command.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        document = client.explanation()
    if as_json:
        print_document(document)
        return
    for line in explanation_lines(document):
        print_text(printable(line))


def explanation_lines(document: Document) -> Iterator[str]:
    """Yield the explanation of a module for people, beginning with its conclusion."""
    yield with_local_times(f"{document['name']}: {document['conclusion']}")
    yield "what neighbors are told of the machine:" if document["neighbors"] else "there is no neighbor to be told"
    yield from (f"  {_told_line(each)}" for each in document["neighbors"])
    machine = document["machine"]
    if machine is not None and machine["kept"]:
        yield f"  not advertised to any: {', '.join(machine['kept'])}"
    yield f"requests since {local_time(document['since'])}: {_counts(document)}"
    for each in document["neighbors"]:
        yield f"  {each['system']}: {_asked(each)}"
    if document["own_users"]["requests"]:
        yield f"  its own users: {_asked(document['own_users'])}"
    if document["refusals"]:
        yield "refused:"
        yield from (f"  {line}" for each in document["refusals"] for line in _refusal_lines(each))
    if document["requests"]:
        yield _matched(document)


def _told_line(neighbor: Document) -> str:
    name = f"{neighbor['system']} ({neighbor['relation']})"
    if not neighbor["linked"]:
        why = f": {neighbor['why_unlinked']}" if neighbor["why_unlinked"] else ""
        return with_local_times(f"{name}: nothing, since it is not linked{why}")
    if not neighbor["revealed"]:
        return f"{name}: nothing, since the policy reveals nothing to it"
    hidden = f", without {', '.join(neighbor['hidden'])}" if neighbor["hidden"] else ""
    sent = ", ".join(_sent(each) for each in neighbor["sent"]) or "nothing yet"
    return f"{name}: {sent}{hidden}"


def _sent(sent: Document) -> str:
    at = f" at {local_time(sent['at'])}" if sent["at"] else ""
    return f"{counted(sent['machines'], 'machine')} {_AS.get(sent['kind'], sent['kind'])}{at}"


def _asked(asked: Document) -> str:
    if not asked["requests"]:
        return "none"
    span = f"the first at {local_time(asked['first_at'])}, the last at {local_time(asked['last_at'])}"
    return f"{_counts(asked)}; {span}"


def _counts(asked: Document) -> str:
    if not asked["requests"]:
        return "none"
    refused = asked["requests"] - asked["accepted"]
    got = f"{asked['accepted']} got {counted(asked['places'], 'place')}"
    return f"{counted(asked['requests'], 'request')} for {counted(asked['tasks'], 'task')}, {got}, {refused} refused"


def _refusal_lines(refused: Document) -> Iterator[str]:
    yield f"{counted(refused['requests'], 'request')} for {counted(refused['tasks'], 'task')} {refused['text']}"
    example = refused["example"]
    tdv = example["tdv"]
    stated = ", ".join(f"${name} {tdv[name]}" for name in _SIZES if name in tdv)
    requirement = f", --require '{example['requirement']}'" if example["requirement"] else ""
    why = f": {example['why']}" if example["why"] else ""
    whose = f"from {example['neighbor']}, of {example['origin']} ({stated}{requirement})"
    yield with_local_times(f"  such as at {local_time(example['at'])} {whose}{why}")


def _matched(document: Document) -> str:
    compared = document["compared"]
    if not compared:
        return "no request was compared with the machine: they were refused before"
    before = document["requests"] - compared
    rest = f" ({before} refused before that)" if before else ""
    return f"{document['matched']} of {counted(compared, 'request')} fit the machine, if it were idle{rest}"
