"""Who dials whom, and where bytes stop, from the topology alone."""

import pytest

from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.config.topology.ways import Link, Why, links_of, ways_of
from messiahs.core.model.ids import SystemId

HEAD = "version: 1\nfederation: f\n"
OURS = "  gate: {host: a, port: 7300, parent: other%s}\n  one: {parent: gate}\n  two: {parent: gate}\n"
OTHER = "  other: {host: b, port: 7300, external: true, trust: theirs.pem}\n"
INTRODUCED = "introductions: [{file: theirs.pem, names: [other]}]\n"


def read(systems: str, *, head: str = HEAD) -> Topology:
    return read_topology(f"{head}systems:\n{systems}", "t.yaml")


def stops(topology: Topology) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the stops between every pair of systems, of which each is in exactly one group."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for ways in (each for each in ways_of(topology) if each.without is None):
        for pair in ((one, other) for one in ways.origins for other in ways.machines if one != other):
            assert pair not in found
            found[pair] = [(system, why.value) for system, why in ways.stops]
    count = len(topology.systems)
    assert len(found) == count * (count - 1)
    return found


def test_each_link_has_one_end_that_dials() -> None:
    topology = read("  r: {}\n  a: {parent: r, reach: outbound}\n  b: {parent: r}\n")
    r, a, b = map(SystemId, "rab")
    assert links_of(topology) == (
        Link(dialer=a, dialed=b, relation="sibling"),
        Link(dialer=a, dialed=r, relation="parent"),
        Link(dialer=b, dialed=r, relation="parent"),
    )


def test_within_a_site_all_bytes_go_straight_in_one_group() -> None:
    topology = read("  r: {}\n  a: {parent: r}\n  b: {parent: r}\n  c: {parent: a}\n")
    (ways,) = ways_of(topology)
    assert (set(ways.origins), ways.stops) == (set("rabc"), ())
    assert stops(topology)


@pytest.mark.parametrize(
    ("reach", "why"), [("", Why.OTHER_SITE), (", reach: proxy", Why.BORDER)], ids=["a gate", "a border"]
)
def test_bytes_between_sites_stop_at_the_gate(reach: str, why: Why) -> None:
    found = stops(read(OTHER + OURS % reach))
    for inside in ("one", "two"):
        assert found["other", inside] == found[inside, "other"] == [("gate", why.value)]
    assert found["one", "two"] == found["gate", "other"] == found["other", "gate"] == []


def test_bytes_between_sites_that_were_introduced_stop_at_borders_only() -> None:
    introduced = HEAD + INTRODUCED
    assert stops(read(OTHER + OURS % "", head=introduced))["one", "other"] == []
    assert stops(read(OTHER + OURS % ", reach: proxy", head=introduced))["one", "other"] == [("gate", "border")]
    of_a_third = HEAD + INTRODUCED.replace("[other]", "[far]")
    assert stops(read(OTHER + OURS % "", head=of_a_third))["one", "other"] == [("gate", "other site")]


def test_a_neighbor_asks_a_machine_that_nobody_can_dial_for_a_connection() -> None:
    found = stops(read("  r: {}\n  m: {parent: r}\n  laptop: {parent: m, reach: outbound}\n"))
    assert found["r", "laptop"] == [("m", "not dialable")]
    assert found["m", "laptop"] == found["laptop", "r"] == []


THIRD = """  pact: {host: p, port: 7300}
  alpha: {parent: pact%s, external: true, trust: alpha.pem}
  beta: {parent: pact, reach: outbound, external: true, trust: beta.pem}
"""


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("", Why.THIRD_SITE),
        ("trusts_relays: true\n", Why.OTHER_SITE),
        ("introductions: [{file: beta.pem, names: [beta]}]\n", Why.THIRD_SITE),
    ],
)
def test_a_third_site_passes_on_what_it_cannot_read_unless_it_is_trusted(head: str, why: Why) -> None:
    found = stops(read(THIRD % ", reach: outbound", head=HEAD + head))
    assert found["alpha", "beta"] == found["beta", "alpha"] == [("pact", why.value)]
    assert found["pact", "beta"] == found["beta", "pact"] == []


def test_bytes_between_introduced_sites_pass_a_third_one_only_toward_a_machine_that_nobody_can_dial() -> None:
    both = INTRODUCED.replace("[other]", "[alpha, beta]")
    found = stops(read(THIRD % ", host: a, port: 7300", head=HEAD + both))
    assert found["alpha", "beta"] == [("pact", "third site")]
    assert found["beta", "alpha"] == []


BESIDE = """  other: {host: b, port: 7300, external: true, trust: theirs.pem}
  east: {host: a, port: 7300, parent: other, reach: proxy}
  west: {host: c, port: 7300, parent: other, reach: proxy}
  one: {parents: [east, west], primary: east}
"""


def test_bytes_can_pass_either_of_two_borders_side_by_side() -> None:
    topology = read(BESIDE)
    assert stops(topology)["one", "other"] == stops(topology)["other", "one"] == [("east", "border")]
    (second,) = (each for each in ways_of(topology) if each.without is not None)
    assert (second.without, second.stops) == ("east", (("west", Why.BORDER),))
    assert set(second.origins) == set(second.machines) == {"one", "other"}


def test_there_is_no_second_way_past_a_single_border() -> None:
    for systems in (OTHER + OURS % ", reach: proxy", BESIDE.replace("[east, west]", "[east]")):
        assert [each for each in ways_of(read(systems)) if each.without is not None] == []
