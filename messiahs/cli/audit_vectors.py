"""`messiahs audit vectors`: counts the machines of a live federation again, and compares with every sum."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click

from messiahs.cli.options import DURATION, JSON, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, locate_module, running_modules, searched_directory
from messiahs.client.module import ModuleClient
from messiahs.core.model.counts import counted
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError
from messiahs.recount.checks import Check
from messiahs.recount.facts import Module
from messiahs.recount.reading import module_of
from messiahs.recount.rounds import Recount

_READ_SECONDS = 2.0
"""How long a module may take to answer; then the others are audited without it."""
_PAUSE_SECONDS = 0.2
_HEADER = ("MODULE", "NEIGHBOR", "EQUATION", "WHAT", "COUNT", "MACHINES", "WHY")


@click.command()
@click.option("--module", "modules", multiple=True, metavar="NAME", help="A module to audit; default: all that run.")
@click.option("--federation", metavar="NAME", help="The federation, where modules of several run.")
@click.option(
    "--within", type=DURATION, default="60s", show_default=True, metavar="TIME", help="Read again for up to TIME."
)
@STATE
@JSON
@click.pass_context
def vectors(
    context: click.Context,
    /,
    *,
    modules: tuple[str, ...],
    federation: str | None,
    within: int,
    state: Path | None,
    as_json: bool,
) -> None:
    """Check that every sum of a live federation counts each machine once, in a class that holds it.

    Reads all modules under the state directory that this account may read, and computes each of their sums again from
    the equations of MESSIAHS 7.3. Neighbors that are not read are believed. Reads again while updates are in flight.
    Exits with 1 if a sum deviates, or if a check has not settled within the time.
    """
    places = _places(modules, federation=federation, state=state)
    done = _audited(places, within_seconds=within)
    if not done.modules:
        raise ClientError("; ".join(f"{name}: {why}" for name, why in done.unread.items()))
    if as_json:
        print_document(_document(done))
    else:
        _print(done)
    if done.recount.failing:
        context.exit(1)


@dataclass(slots=True)
class _Audit:
    """The facts of the last read, and what was found (mutable)."""

    recount: Recount = field(default_factory=Recount)
    modules: Mapping[str, Module] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    """Modules that were to be read, and why they were not."""

    def outside(self) -> list[str]:
        """Return the neighbors of modules that were read which were not meant to be, sorted."""
        known = {name for module in self.modules.values() for name in module.neighbors}
        return sorted(known - self.modules.keys() - self.unread.keys())

    def withheld(self) -> list[tuple[str, str]]:
        """Return the modules that show a neighbor nothing, with the neighbor: their policy says so."""
        return [
            (module.name, neighbor.name)
            for module in self.modules.values()
            for neighbor in module.neighbors.values()
            if any(sent.is_withheld for sent in neighbor.sent.values())
        ]


def _places(names: tuple[str, ...], *, federation: str | None, state: Path | None) -> tuple[ModulePlace, ...]:
    if names:
        found = tuple(dict.fromkeys(locate_module(name, state=state) for name in names))
    else:
        found = running_modules(searched_directory(state))
    if federation is not None:
        found = tuple(place for place in found if place.federation == federation)
    federations = sorted({place.federation for place in found})
    if not found:
        raise ClientError(f"no module of a federation {federation} runs here")
    if len(federations) > 1:
        raise ClientError(f"which federation? name one of {', '.join(federations)} with `--federation`")
    return found


def _audited(places: tuple[ModulePlace, ...], *, within_seconds: int) -> _Audit:
    """Read all modules again and again, until all checks have settled or the time is over."""
    done = _Audit()
    until = time.monotonic() + within_seconds
    with ExitStack() as stack:
        clients = {
            place.module: stack.enter_context(
                ModuleClient(place.socket, patience=_READ_SECONDS, answer_seconds=_READ_SECONDS)
            )
            for place in places
        }
        while True:
            done.unread.clear()
            done.modules = dict(_read(clients, done.unread))
            done.recount.read(done.modules, time.monotonic_ns())
            if done.recount.is_settled or time.monotonic() >= until:
                return done
            time.sleep(_PAUSE_SECONDS)


def _read(clients: Mapping[str, ModuleClient], unread: dict[str, str]) -> Iterator[tuple[str, Module]]:
    for name, client in clients.items():
        try:
            yield name, module_of(client.exchanged_vectors())
        except ClientError as error:
            unread[name] = str(error)


def _document(done: _Audit) -> Document:
    return {
        "modules": sorted(done.modules),
        "unread": [{"name": name, "why": why} for name, why in sorted(done.unread.items())],
        "outside": done.outside(),
        "withheld": [{"module": module, "neighbor": neighbor} for module, neighbor in done.withheld()],
        "reads": done.recount.reads,
        "held": len(done.recount.held),
        "deviating": [_found(check) for check in done.recount.deviating()],
        "unsettled": [_found(check) for check in done.recount.unsettled()],
    }


def _found(check: Check) -> Document:
    place = check.place
    return {
        "module": place.module,
        "neighbor": place.neighbor,
        "equation": place.equation,
        "about": place.about,
        "deviations": [
            {"what": each.what.value, "count": each.count, "machines": list(each.machines), "text": each.text}
            for each in check.deviations
        ],
    }


def _print(done: _Audit) -> None:
    recount = done.recount
    modules, checks, reads = len(done.modules), len(recount.held), recount.reads
    print_text(f"{counted(modules, 'module')}, {counted(checks, 'check')} held, {counted(reads, 'read')}")
    for name, why in sorted(done.unread.items()):
        print_text(printable(f"not read: {name}: {why}"))
    if done.outside():
        print_text(printable(f"believed, since only their neighbors were read: {', '.join(done.outside())}"))
    for module, neighbor in done.withheld():
        print_text(printable(f"{module} shows {neighbor} nothing, by its policy"))
    for title, found in (("deviating", recount.deviating()), ("not settled in time", recount.unsettled())):
        if found:
            print_text(f"{title}:")
            print_table(_HEADER, _rows(found))


def _rows(found: tuple[Check, ...]) -> Iterator[tuple[str, ...]]:
    for check in found:
        place = check.place
        for each in check.deviations:
            machines = ", ".join(each.machines) or "-"
            about = (place.module, place.neighbor, str(place.equation), each.what.value, str(each.count), machines)
            yield (*about, each.text)
