"""What links cost in a simulation, as a topology states it."""

import pytest

from messiahs.config.topology.reading import read_topology
from messiahs.core.model.instants import MILLISECOND
from messiahs.core.model.link_costs import LinkCosts
from messiahs.errors import TopologyError

SYSTEMS = "systems: {top: {}, a: {parent: top}, b: {parent: top}, c: {parent: a}}\n"


def links(text: str) -> dict[tuple[str, ...], LinkCosts]:
    read = read_topology(f"version: 1\nfederation: lab\n{SYSTEMS}simulated_links:{text}\n", "lab.yaml")
    return {tuple(sorted(ends)): costs for ends, costs in read.simulated_links.items()}


def test_links_between_parents_children_and_siblings_have_costs() -> None:
    assert links(
        """
  - {between: [top, a], round_trip: 80ms, throughput: 5MB}
  - {between: [b, a], throughput: 10B}
  - {between: [c, a], round_trip: 2s}"""
    ) == {
        ("a", "top"): LinkCosts(80 * MILLISECOND, 5_000_000),
        ("a", "b"): LinkCosts(None, 10),
        ("a", "c"): LinkCosts(2_000 * MILLISECOND, None),
    }
    assert links(" []") == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" {a: b}", r"lab.yaml:4:18: `simulated_links` takes a list of \{between"),
        (" [a]", r"lab.yaml:4:19: `simulated_links` takes a list of"),
        (" [{between: [top, c]}]", "lab.yaml:4:19: `between` takes two neighbors"),
        (" [{between: [b, c]}]", "two neighbors"),
        (" [{between: [a, a]}]", "two neighbors"),
        (" [{between: [a, nobody]}]", "two neighbors"),
        (" [{between: [a]}]", "two neighbors"),
        (" [{between: a}]", "two neighbors"),
        (" [{}]", "two neighbors"),
        (" [{between: [a, top]}, {between: [top, a]}]", "lab.yaml:4:40: the link between a and top is listed twice"),
        (" [{between: [a, top], round_trip: 8}]", "round_trip: `8` is not a duration"),
        (" [{between: [a, top], throughput: 0B}]", "throughput: more than 0"),
        (" [{between: [a, top], round_trip: 2h}]", "round_trip: more than 0, at most 1h"),
        (" [{between: [a, top], latency: 2s}]", "unknown key `latency`"),
    ],
)
def test_what_is_no_link_of_the_file_is_a_problem_at_its_place(text: str, problem: str) -> None:
    with pytest.raises(TopologyError, match=problem):
        links(text)
