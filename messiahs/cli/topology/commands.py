"""`messiahs topology …`: check and draw topology files; the other commands are in modules of their own."""

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON, STATE, TOPOLOGY
from messiahs.cli.output import print_document, print_text
from messiahs.cli.topology.apply import apply
from messiahs.cli.topology.bundle import bundle
from messiahs.cli.topology.diff import diff
from messiahs.errors import TopologyError

if TYPE_CHECKING:
    from messiahs.config.settings import TrustedFile
    from messiahs.config.topology.topology import System, Topology
    from messiahs.config.topology.ways import Link, Ways

_WIDTH = 80
_INDENT_LIMIT = 16
_AT_A_STOP = {
    "border": "border",
    "other site": "link with another site",
    "third site": "third site: unread, or refused",
    "not dialable": "asks for a connection",
}


@click.group()
def topology() -> None:
    """Check and draw topology files, and take them to the hosts that run them."""


topology.add_command(apply)
topology.add_command(bundle)
topology.add_command(diff)


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
        print_text(warning, err=True)
    if problems:
        raise TopologyError(problems)
    externals = f", {len(loaded.externals)} of them external" if loaded.externals else ""
    print_text(f"{topology_file}: {len(loaded.systems)} systems{externals}, no problems")
    return 0


@topology.command()
@TOPOLOGY
@JSON
def show(topology_file: Path, *, as_json: bool) -> None:
    """Draw TOPOLOGY: each system under its primary parent, who dials whom, and the ways of bytes.

    The ways are those from the origin of a task to its machine, as far as the file knows the systems between.
    """
    from messiahs.config.topology.reading import load_topology
    from messiahs.config.topology.ways import links_of, ways_of

    loaded = load_topology(topology_file)
    links, ways = links_of(loaded), ways_of(loaded)
    if as_json:
        print_document(
            {
                "federation": loaded.federation,
                "introductions": [_roots(each) for each in loaded.introductions],
                "systems": {system.name: _facts(system) for system in loaded.systems},
                "links": [{"dialer": each.dialer, "dialed": each.dialed, "relation": each.relation} for each in links],
                "ways": [
                    {
                        "from": list(each.origins),
                        "to": list(each.machines),
                        "stops": [{"system": system, "why": why.value} for system, why in each.stops],
                        "without": each.without,
                    }
                    for each in ways
                ],
            }
        )
        return
    for line in (*_tree_lines(loaded), "", *link_lines(links), "", *way_lines(ways)):
        print_text(line)


def link_lines(links: "Iterable[Link]") -> Iterator[str]:
    """Yield who dials whom, with what the dialed system is to the dialing one."""
    yield "who dials whom:"
    dialed: dict[str, list[str]] = {}
    for link in links:
        dialed.setdefault(link.dialer, []).append(f"{link.dialed} ({link.relation})")
    for dialer, found in dialed.items():
        yield from _wrapped(f"  {dialer} -> ", ", ".join(found))


def way_lines(ways: "Iterable[Ways]") -> Iterator[str]:
    """Yield the ways of bytes that are not straight, those that are equal together."""
    stopping = [each for each in ways if each.stops]
    straight = "straight between all systems" if not stopping else "straight, except"
    yield f"bytes, from the origin of a task to its machine: {straight}"
    for each in stopping:
        by = " and ".join(f"{system} ({_AT_A_STOP[why]})" for system, why in each.stops)
        yield from _wrapped(f"  or, without {each.without}, by " if each.without else "  by ", by)
        yield from _wrapped("    from ", " ".join(each.origins))
        yield from _wrapped("    to   ", " ".join(each.machines))


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), _INDENT_LIMIT),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _tree_lines(loaded: "Topology") -> Iterator[str]:
    yield loaded.federation
    yield from _branches(loaded, None, "")
    for each in loaded.introductions:
        yield from _wrapped("introduction: ", _vouching(each))


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
        first, *more = _wrapped("", f"{indent}{'└─' if is_last else '├─'} {system.name}{suffix}")
        below_it = f"{indent}{'   ' if is_last else '│  '}"
        yield first
        yield from (f"{below_it}  {line}" for line in more)
        yield from _branches(loaded, system.name, below_it)


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
