"""Who dials whom, and links that neither end can dial."""

from pathlib import Path

import pytest

from messiahs.config.topology.neighbors import TlsPaths, module_settings, neighbors_of
from messiahs.config.topology.reach import dials
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import TopologyError

HEAD = "version: 1\nfederation: f\nsystems:\n"
TLS = TlsPaths(certificate_file=Path("/c"), key_file=Path("/k"), trust_file=Path("/t"))
FAMILY = "  r: {}\n  o: {parent: r}\n  p: {parent: r}\n  c: {parents: [r, p], primary: r}\n"


def read(body: str) -> Topology:
    return read_topology(HEAD + body, "t.yaml")


def ways(topology: Topology) -> list[tuple[str, str]]:
    """Return who dials whom."""
    found = (
        (system.name, other.system)
        for system in topology.systems
        for other in neighbors_of(topology, system.name)
        if dials(system, topology.system(other.system), neighbor=other)
    )
    return sorted(found)


def test_exactly_one_end_of_every_link_dials() -> None:
    assert ways(read(FAMILY)) == [("c", "o"), ("c", "p"), ("c", "r"), ("o", "p"), ("o", "r"), ("p", "r")]


def test_an_outbound_system_dials_parents_children_and_siblings() -> None:
    outbound = FAMILY.replace("p: {parent: r}", "p: {parent: r, reach: outbound}")
    assert ways(read(outbound)) == [("c", "o"), ("c", "r"), ("o", "r"), ("p", "c"), ("p", "o"), ("p", "r")]


def test_siblings_that_nobody_can_dial_have_no_link() -> None:
    topology = read("  r: {}\n" + "".join(f"  {name}: {{parent: r, reach: outbound}}\n" for name in "abc"))
    assert ways(topology) == [("a", "r"), ("b", "r"), ("c", "r")]


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        (
            "  r: {}\n  a: {parent: r, reach: outbound}\n  b: {parent: a, reach: outbound}\n",
            "6:15",
            "neither `b` nor its parent `a` can dial the other: both have `reach: outbound`; remove it from the one",
        ),
        (
            "  a: {external: true, reach: outbound}\n  b: {parents: [a], reach: outbound}\n",
            "5:17",
            "neither `b` nor its parent `a` can dial the other",
        ),
        (
            "  a: {host: h, port: 1, reach: outbound}\n",
            "4:7",
            "nobody dials a system with `reach: outbound`: remove its `host`",
        ),
        ("  a: {host: h, port: 1, reach: outbound}\n", "4:16", "nobody dials a system with `reach: outbound`"),
        (
            "  a: {reach: outbound}\n  b: {parent: a, external: true}\n",
            "5:3",
            "`b` is external and a child of `a`, which dials it: add `host` and `port`",
        ),
    ],
)
def test_a_link_that_cannot_be_dialed_is_reported_with_its_place(body: str, place: str, text: str) -> None:
    with pytest.raises(TopologyError) as raised:
        read(body)
    assert [problem for problem in str(raised.value).splitlines() if problem.startswith(f"t.yaml:{place}: {text}")]


def test_an_external_parent_that_nobody_can_dial_needs_no_address() -> None:
    topology = read("  a: {external: true, reach: outbound}\n  b: {parent: a, host: h, port: 1}\n")
    assert ways(topology) == [("a", "b")]


def test_an_outbound_module_listens_nowhere_and_needs_no_address(tmp_path: Path) -> None:
    topology = read(FAMILY.replace("p: {parent: r}", "p: {parent: r, reach: outbound}"))
    addresses = {name: f"{name}:1" for name in "roc"}
    inner = module_settings(topology, "p", addresses=addresses, state_directory=tmp_path, tls=TLS)
    assert inner.listen == ""
    assert [(link.neighbor.system, link.address) for link in inner.neighbors] == [
        ("c", "c:1"), ("o", "o:1"), ("r", "r:1"),
    ]  # fmt: skip
    parent = module_settings(topology, "r", addresses=addresses, state_directory=tmp_path, tls=TLS)
    assert {link.address for link in parent.neighbors} == {None}
