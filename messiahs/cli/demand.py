"""`messiahs demand`: which capacity was missing for tasks at a module and at the systems below it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import local_time, print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.core.model.task_limits import size_text

_HEADER: Final = ("LACKS", "ARCH", "OS", "TASKS", "PROCESSORS", "DAY", "DENIED")
_DAY_S: Final = 86_400
_SIZES: Final = {"mem": "memory", "disk": "disk"}
_WORDS: Final = {
    "requirement": "another requirement",
    "policy": "permission: policies refuse",
    "other": "other",
    "arch": "machines of this architecture",
    "os": "machines of this operating system",
}


@click.command()
@MODULE
@STATE
@JSON
def demand(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show which capacity is missing for the tasks that wait at this module and below it, as far as systems report it.

    `TASKS` is how many wait now, and `PROCESSORS` how many they would take. `DAY` is how many processors were wanted in
    vain on average in the last day, and `DENIED` how many tasks were denied instead of waiting; older demand counts
    less. Only root and the user of the module may use this command.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        document = client.demand()
    if as_json:
        print_document(document)
        return
    children = document["children"]
    below = f" and of {len(children)} below it ({', '.join(children)})" if children else ""
    print_text(f"unmet demand of {document['system']}{below}, counted since {local_time(document['since'])}")
    if any(map(_is_shown, document["total"]["classes"])):
        print_table(_HEADER, _rows(document))
    else:
        print_text("no task lacks any capacity")


def _rows(document: Document) -> Iterator[tuple[object, ...]]:
    """Yield a line for each class, and one for the total, for the own users and for each child that has some."""
    total = document["total"]
    for each in filter(_is_shown, total["classes"]):
        yield (lacked(each), each["arch"] or "-", each["os"] or "-", *_numbers(each))
    parts = {f"of {document['system']}": document["own"]}
    parts |= {f"through {system}": part for system, part in document["children"].items()}
    for name, part in (("in all", total), *parts.items()):
        if _is_shown(part):
            yield (name, "", "", *_numbers(part))


def lacked(each: Document) -> str:
    """Return what the tasks of a class of unmet demand lack, with how much of it one task needs."""
    capacity, amount = each["capacity"], each["amount"]
    if capacity in _WORDS:
        return _WORDS[capacity]
    up_to = "up to " if amount > 1 else ""
    if capacity in _SIZES:
        needed = f"{up_to}{size_text(amount)} of {_SIZES[capacity]}"
    else:
        needed = f"{up_to}{amount} {capacity}" if amount else str(capacity)
    return f"{needed}: all in use" if each["busy"] else f"{needed}: no machine has that"


def _is_shown(size: Document) -> bool:
    """Whether not all numbers are 0: old demand fades away."""
    return any(float(number) for number in _numbers(size))


def _numbers(size: Document) -> tuple[int | str, ...]:
    return size["tasks"], size["processors"], f"{size['wanted_s'] / _DAY_S:.1f}", size["denied"]
