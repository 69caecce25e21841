"""Two sites of which nobody can dial one: it dials the other, through an HTTP proxy, or over IPv6."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.small_sites import Site, exchange_roots
from tests.ports import free_port, listening_ports
from tests.waiting import eventually

HEAD = "version: 1\nfederation: pact\ndefaults: {update_period: 200ms}\nsystems:\n"
THEIRS = "external: true, trust: theirs.pem"
LARGE = bytes(range(256)) * 20_000


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Make folders for two sites, and end their modules afterwards."""
    alpha, beta = Site(name="alpha", folder=tmp_path / "a"), Site(name="beta", folder=tmp_path / "b")
    for site in (alpha, beta):
        site.folder.mkdir()
    yield alpha, beta
    for site in (alpha, beta):
        if site.process is not None and site.process.poll() is None:
            site.end()


def describe(site: Site, *, alpha: str, beta: str) -> None:
    """Write the file of a site; the other words of each system say how it is reached."""
    own = f"machine: {{isolation: process, slots: 1, attributes: {{site: {site.name}}}}}"
    above, below = (own, THEIRS) if site.name == "alpha" else (THEIRS, own)
    systems = f"  alpha: {{{above}, {alpha}}}\n  beta: {{{below}, parent: alpha, {beta}}}\n"
    (site.folder / "site.yaml").write_text(HEAD + systems)


def start(alpha: Site, beta: Site) -> None:
    exchange_roots(alpha, beta)
    for site in (alpha, beta):
        site.start()
    eventually(lambda: alpha.machines("up") == 2 and beta.machines("down") == 2)


def swap_bytes(one: Site, other: Site) -> None:
    """Run a task of each site at the other, with a large input and a large output."""
    for site, there in ((one, other), (other, one)):
        (site.folder / "large").write_bytes(LARGE)
        words = ("--require", f'$site eq "{there.name}"', "--input", str(site.folder / "large"))
        task = site.run("submit", "--quiet", *words, "--output", "copy", "--", "cp", "large", "copy").stdout.strip()
        assert site.run("wait", task).returncode == 0, site.run("explain", task).stdout
        assert site.executed_on() == there.name
        assert site.run("fetch", task, "--into", str(site.folder / "home")).returncode == 0
        copy = (site.folder / "home" / "copy").read_bytes()
        assert hashlib.sha256(copy).digest() == hashlib.sha256(LARGE).digest()


def test_a_site_without_a_port_dials_through_an_http_proxy(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    port = free_port()
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.http_proxy", f"alpha.invalid:{port}={port}"]
        proxy = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(proxy.terminate)
        assert proxy.stdout is not None
        at = f"http_proxy: 'http://127.0.0.1:{int(proxy.stdout.readline())}'"
        describe(alpha, alpha=f"host: 127.0.0.1, port: {port}", beta="reach: outbound")
        describe(beta, alpha=f"host: alpha.invalid, port: {port}", beta=f"reach: outbound, {at}")
        start(alpha, beta)
        assert beta.process is not None
        assert listening_ports(beta.process.pid) == set()
        swap_bytes(alpha, beta)
        assert [site.end() for site in sites] == [0, 0]
        proxy.terminate()
        asked = {line.split()[1] for line in proxy.stdout}
        assert f"alpha.invalid:{port}" in asked


def test_a_parent_that_nobody_can_dial_dials_its_child_over_ipv6(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    there = f'host: "::1", port: {free_port()}'
    describe(alpha, alpha="reach: outbound", beta=there)
    describe(beta, alpha="reach: outbound", beta=there)
    start(alpha, beta)
    assert alpha.process is not None
    assert listening_ports(alpha.process.pid) == set()
    swap_bytes(alpha, beta)
    assert [site.end() for site in sites] == [0, 0]
