"""Where a module serves metrics: by default nowhere, on loopback as plain text, elsewhere only to who shows a root."""

from pathlib import Path

import pytest

from messiahs.config.settings import MetricsSettings
from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import TopologyError


def topology(system: str) -> Topology:
    return read_topology(f"version: 1\nfederation: lab\nsystems:\n  a: {system}\n", "/etc/lab.yaml")


def test_a_module_serves_metrics_only_if_its_system_says_where() -> None:
    assert topology("{}").systems[0].metrics is None
    (found,) = topology('{metrics: {listen: "127.0.0.1:9464"}}').systems
    assert found.metrics == MetricsSettings(host="127.0.0.1", port=9464)
    (found,) = topology('{metrics: {listen: "[::1]:9464"}}').systems
    assert found.metrics is not None
    assert found.metrics.address == "[::1]:9464"
    assert topology('{metrics: {listen: "localhost:80"}}').systems[0].metrics is not None


def test_with_roots_it_may_be_any_address() -> None:
    for address in ("10.0.0.5:9464", "[2001:db8::1]:9464", "0.0.0.0:9464"):
        (found,) = topology(f'{{metrics: {{listen: "{address}", client_roots: monitoring.pem}}}}').systems
        assert found.metrics is not None
        assert (found.metrics.address, found.metrics.client_roots) == (address, Path("/etc/monitoring.pem"))


@pytest.mark.parametrize("address", ["10.0.0.5:9464", "0.0.0.0:9464", "[::]:9464", "[2001:db8::1]:9464"])
def test_plain_text_is_refused_beyond_loopback_with_the_remedy(address: str) -> None:
    with pytest.raises(TopologyError, match=r"lab.yaml:4:\d+: `.*` is not on loopback, .*add `client_roots: FILE`"):
        topology(f'{{metrics: {{listen: "{address}"}}}}')


@pytest.mark.parametrize(
    "value", ["9464", "x:1", "127.0.0.1", "'::1:80'", "'[127.0.0.1]:80'", "127.0.0.1:0", "127.0.0.1:65536", "[1]"]
)
def test_what_is_no_address_is_refused_at_its_place(value: str) -> None:
    with pytest.raises(TopologyError, match=r"lab.yaml:4:\d+: `listen` takes an address of this host and a port"):
        topology(f"{{metrics: {{listen: {value}}}}}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{}", "`metrics` needs `listen: ADDRESS:PORT`"),
        ("{listen: '127.0.0.1:80', port: 1}", "unknown key `port`"),
        ("true", "`metrics` needs a mapping"),
        ("{listen: '127.0.0.1:80', client_roots: 1}", "`client_roots` takes the name of a file"),
    ],
)
def test_other_mappings_are_refused(value: str, text: str) -> None:
    with pytest.raises(TopologyError, match=text):
        topology(f"{{metrics: {value}}}")


def test_metrics_of_another_site_belong_into_its_own_file() -> None:
    text = "b: {}\n  a: {parent: b, external: true, metrics: {listen: '127.0.0.1:80'}}"
    with pytest.raises(TopologyError, match="an external system has its `metrics` in its own site's file"):
        read_topology(f"version: 1\nfederation: lab\nsystems:\n  {text}\n", "lab.yaml")


def test_another_address_is_a_difference_that_waits_for_a_restart() -> None:
    new = topology("{metrics: {listen: '127.0.0.1:80'}}")
    (found,) = topology_differences(topology("{}"), new).changed["a"]
    assert (str(found), found.needs_restart) == ("metrics: none -> 127.0.0.1:80", True)
