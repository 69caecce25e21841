"""Hosts to which a module may post the ends of tasks: none by default, and no URLs, names with blanks or wide ports."""

import pytest

from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import TopologyError


def topology(systems: str = "a: {}", *, defaults: str = "{}") -> Topology:
    return read_topology(f"version: 1\nfederation: lab\ndefaults: {defaults}\nsystems: {{{systems}}}\n", "lab.yaml")


def test_a_system_has_the_hosts_of_the_defaults_or_its_own_and_by_default_none() -> None:
    found = topology("a: {}, b: {webhook_hosts: ['[::1]:8080']}", defaults="{webhook_hosts: [Hooks.example.org]}")
    assert [each.webhook_hosts for each in found.systems] == [("hooks.example.org",), ("[::1]:8080",)]
    assert topology().systems[0].webhook_hosts == ()


@pytest.mark.parametrize(
    "value", ["x", "[1]", "['https://x']", "['a b']", "['a:0']", "['a:65536']", "['[a]']", "['::1']"]
)
def test_what_is_no_list_of_hosts_is_refused_at_its_place(value: str) -> None:
    with pytest.raises(TopologyError, match=r"lab.yaml:4:\d+: webhook_hosts: a list of hosts, such as"):
        topology(f"a: {{webhook_hosts: {value}}}")


def test_another_list_is_a_difference() -> None:
    (found,) = topology_differences(topology(), topology("a: {webhook_hosts: [x.org]}")).changed["a"]
    assert (str(found), found.needs_restart) == ("webhook_hosts: none -> x.org", True)
