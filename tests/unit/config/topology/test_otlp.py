"""Where a module sends spans: by default nowhere, over https anywhere, as plain text on loopback alone."""

from pathlib import Path

import pytest

from messiahs.config.settings import OtlpSettings
from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import TopologyError

SECURE = "https://collector:4318/v1/traces"


def topology(system: str) -> Topology:
    return read_topology(f"version: 1\nfederation: lab\nsystems:\n  a: {system}\n", "/etc/lab.yaml")


def test_a_module_sends_spans_only_if_its_system_says_where() -> None:
    assert topology("{}").systems[0].otlp is None
    (found,) = topology(f'{{otlp: {{endpoint: "{SECURE}", roots: ca.pem}}}}').systems
    assert found.otlp == OtlpSettings(endpoint=SECURE, roots=Path("/etc/ca.pem"))


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://collector.example.org/v1/traces",
        "https://10.0.0.5:4318/custom",
        "https://[2001:db8::1]:4318/v1/traces",
        "http://127.0.0.1:4318/v1/traces",
        "http://[::1]:4318/v1/traces",
        "http://localhost:4318/v1/traces",
    ],
)
def test_https_may_go_anywhere_and_http_to_loopback(endpoint: str) -> None:
    assert topology(f'{{otlp: {{endpoint: "{endpoint}"}}}}').systems[0].otlp == OtlpSettings(endpoint=endpoint)


@pytest.mark.parametrize("host", ["collector", "10.0.0.5", "[2001:db8::1]", "0.0.0.0"])
def test_plain_text_is_refused_beyond_loopback_with_the_remedy(host: str) -> None:
    with pytest.raises(
        TopologyError, match=r"lab.yaml:4:\d+: `.*` is not on loopback, .*use https, with `roots: FILE`"
    ):
        topology(f'{{otlp: {{endpoint: "http://{host}:4318/v1/traces"}}}}')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{}", "`otlp` needs `endpoint: URL`, such as https://"),
        (f"{{endpoint: '{SECURE}', header: x}}", "unknown key `header`"),
        ("true", "`otlp` needs a mapping"),
        (f"{{endpoint: '{SECURE}', roots: 1}}", "`roots` takes the name of a file"),
        ("{endpoint: 'http://localhost:1/v1/traces', roots: ca.pem}", "`roots` are those of a certificate"),
        ("{endpoint: 4318}", "`endpoint` takes the URL of a collector"),
        ("{endpoint: 'collector:4318/v1/traces'}", "`endpoint` takes the URL of a collector"),
        ("{endpoint: 'ftp://collector/v1/traces'}", "`endpoint` takes the URL of a collector"),
        ("{endpoint: 'https://[/v1/traces'}", "`endpoint` takes the URL of a collector"),
        ("{endpoint: 'https://a b/v1/traces'}", "`endpoint` takes the URL of a collector"),
        ("{endpoint: 'https://me:secret@collector/v1/traces'}", "without a user and password"),
        ("{endpoint: 'https://collector:0/v1/traces'}", "`endpoint` takes a URL with HOST or HOST:PORT"),
        ("{endpoint: 'https://collector:65536/v1/traces'}", "`endpoint` takes a URL with HOST or HOST:PORT"),
        ("{endpoint: 'https://[127.0.0.1]/v1/traces'}", "`endpoint` takes"),
        ("{endpoint: 'https://collector:4318'}", "`endpoint` takes the whole URL for traces"),
        ("{endpoint: 'https://collector:4318/'}", "`endpoint` takes the whole URL for traces"),
        ("{endpoint: 'https://collector/v1/traces?key=1'}", "`endpoint` takes the whole URL for traces"),
    ],
)
def test_other_mappings_are_refused_at_their_place(value: str, text: str) -> None:
    with pytest.raises(TopologyError, match=rf"lab.yaml:4:\d+: .*{text}"):
        topology(f"{{otlp: {value}}}")


def test_a_password_is_not_repeated_in_the_error() -> None:
    with pytest.raises(TopologyError) as refused:
        topology("{otlp: {endpoint: 'https://me:secret@collector/v1/traces'}}")
    assert "secret" not in str(refused.value)


def test_the_collector_of_another_site_belongs_into_its_own_file() -> None:
    text = f"b: {{}}\n  a: {{parent: b, external: true, otlp: {{endpoint: '{SECURE}'}}}}"
    with pytest.raises(TopologyError, match="an external system has its `otlp` in its own site's file"):
        read_topology(f"version: 1\nfederation: lab\nsystems:\n  {text}\n", "lab.yaml")


def test_another_collector_is_a_difference_that_waits_for_a_restart() -> None:
    new = topology(f"{{otlp: {{endpoint: '{SECURE}'}}}}")
    (found,) = topology_differences(topology("{}"), new).changed["a"]
    assert (str(found), found.needs_restart) == (f"otlp: none -> {SECURE}", True)
