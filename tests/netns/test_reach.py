"""A firewall that lets connections through in one direction only: the doctor says which side has to open it.

`left` and `right` are siblings below `hub`, each on a host of its own.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from tests.live.small_sites import Site
from tests.netns.namespaces import nft
from tests.netns.network import Network, network
from tests.waiting import eventually

pytestmark = pytest.mark.netns
HOSTS = ("hub", "left", "right")
PORT = 7301


@dataclass(frozen=True, slots=True, kw_only=True)
class Walled:
    """The modules, and the network of their hosts."""

    network: Network
    sites: dict[str, Site]

    @contextmanager
    def firewall(self, host: str, hook: str, *, rule: str) -> Iterator[None]:
        """Drop packets at a host for the block."""
        chain = f"chain passing {{\ntype filter hook {hook} priority 0;\n{rule} drop\n}}"
        nft(self.network.netns(host), f"table inet closed {{\n{chain}\n}}")
        try:
            yield
        finally:
            nft(self.network.netns(host), "delete table inet closed")

    def found(self, host: str) -> dict[str, tuple[str, str]]:
        """Return what the doctor finds at a module."""
        done = self.sites[host].run("doctor", "--module", host, "--json")
        checks = {each["what"]: (each["level"], each["text"]) for each in json.loads(done.stdout)["checks"]}
        assert done.returncode == ("FAIL" in {level for level, _ in checks.values()})
        return checks

    def levels(self, host: str) -> dict[str, str]:
        """Return how well the neighbors of a module reach it."""
        return {what: level for what, (level, _) in self.found(host).items() if what.startswith("from ")}


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walled]:
    """Start the modules, whose hosts have no firewall yet."""
    folder = tmp_path_factory.mktemp("reach")
    with network(HOSTS, wires=(), switched=HOSTS) as made:
        lines = ["version: 1", "federation: pact", "defaults: {update_period: 300ms}", "systems:"]
        for name in HOSTS:
            parent = "" if name == "hub" else ", parent: hub"
            lines.append(f"  {name}: {{host: {made.addresses[name]}, port: {PORT}{parent}}}")
        (folder / "site.yaml").write_text("\n".join(lines) + "\n")
        sites = {name: Site(name=name, folder=folder, netns=made.netns(name)) for name in HOSTS}
        try:
            for site in sites.values():
                site.start()
                eventually((folder / "state" / "pact" / f"{site.name}.sock").exists)
            yield Walled(network=made, sites=sites)
        finally:
            for site in sites.values():
                if site.process is not None and site.process.poll() is None:
                    site.end()
            remove_tasks(folder / "state")


def test_without_firewalls_everybody_reaches_everybody(walled: Walled) -> None:
    for host in HOSTS:
        expected = {f"from {other}": "ok" for other in HOSTS if other != host}
        eventually(lambda host=host, expected=expected: walled.levels(host) == expected)  # type: ignore[misc]


def test_the_own_firewall_is_named_if_nobody_comes_in_over_links_that_work(walled: Walled) -> None:
    with walled.firewall("left", "input", rule=f"tcp dport {PORT} ct state new"):
        eventually(lambda: walled.levels("left") == {"from hub": "FAIL", "from right": "FAIL"})
        found = walled.found("left")
        assert f"let the firewall of this side admit TCP port {PORT}" in found["from hub"][1]
        assert {found[f"link {other}"][0] for other in ("hub", "right")} == {"ok"}
        # The other direction is open, and the doctor there has nothing to say.
        assert walled.levels("hub")["from left"] == "ok"
    eventually(lambda: walled.levels("left") == {"from hub": "ok", "from right": "ok"})


def test_the_firewall_of_the_neighbor_is_named_if_others_come_in(walled: Walled) -> None:
    left = walled.network.addresses["left"]
    with walled.firewall("hub", "output", rule=f"ip daddr {left} tcp dport {PORT} ct state new"):
        eventually(lambda: walled.levels("left") == {"from hub": "FAIL", "from right": "ok"})
        text = walled.found("left")["from hub"][1]
        assert f"nothing answers it at {left}:{PORT}, where right reaches this module" in text
        assert f"let the firewall of hub admit connections out to port {PORT}" in text
    eventually(lambda: walled.levels("left")["from hub"] == "ok")
