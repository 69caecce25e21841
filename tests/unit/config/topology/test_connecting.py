"""How systems keep connections alive, and their HTTP proxies, in the topology file."""

from pathlib import Path

import pytest

from messiahs.channel.grpc_options import client_options
from messiahs.config.settings import ConnectionSettings
from messiahs.config.topology.neighbors import TlsPaths, module_settings
from messiahs.config.topology.reading import read_topology
from messiahs.core.model.instants import SECOND
from messiahs.errors import TopologyError

HEAD = "version: 1\nfederation: f\nsystems:\n"
TLS = TlsPaths(certificate_file=Path("/c"), key_file=Path("/k"), trust_file=Path("/t"))


def test_a_module_gets_what_its_system_says(tmp_path: Path) -> None:
    body = "  a: {}\n  b: {parent: a, keep_alive: 25s, http_proxy: 'http://ann:x@proxy:3128'}\n"
    topology = read_topology(HEAD + body, "t.yaml")
    addresses = {"a": "a:1", "b": "b:1"}
    found = [
        module_settings(topology, name, addresses=addresses, state_directory=tmp_path, tls=TLS).connections
        for name in "ab"
    ]
    said = ConnectionSettings(keep_alive_ns=25 * SECOND, http_proxy="http://ann:x@proxy:3128")
    assert found == [ConnectionSettings(keep_alive_ns=10 * SECOND), said]


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        ("  a: {keep_alive: 4s}\n", "4:19", "keep_alive: from 5s to 5min"),
        ("  a: {keep_alive: 6min}\n", "4:19", "keep_alive: from 5s to 5min"),
        ("  a: {keep_alive: 10}\n", "4:19", "keep_alive: `10`"),
        ("  a: {http_proxy: 'proxy:3128'}\n", "4:19", "`http_proxy` takes an HTTP proxy as http://HOST:PORT"),
        ("  a: {http_proxy: 'https://proxy:3128'}\n", "4:19", "`http_proxy` takes"),
        ("  a: {http_proxy: 'http://proxy'}\n", "4:19", "`http_proxy` takes"),
        ("  a: {http_proxy: 'http://proxy:x'}\n", "4:19", "`http_proxy` takes"),
        ("  a: {http_proxy: 1}\n", "4:19", "`http_proxy` takes"),
        ("  a: {external: true, keep_alive: 10s}\n", "4:23", "an external system has its `keep_alive` in its own"),
    ],
)
def test_a_mistake_is_reported_with_its_place(body: str, place: str, text: str) -> None:
    with pytest.raises(TopologyError) as raised:
        read_topology(HEAD + body, "t.yaml")
    assert [problem for problem in str(raised.value).splitlines() if problem.startswith(f"t.yaml:{place}: {text}")]


def test_a_ping_follows_after_two_thirds_of_the_silence_that_is_allowed() -> None:
    options = dict(client_options(15.0))
    assert (options["grpc.keepalive_time_ms"], options["grpc.keepalive_timeout_ms"]) == (10_000, 5_000)
    assert options["grpc.keepalive_permit_without_calls"] == 1
