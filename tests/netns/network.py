"""A network of hosts that a test wires: one network namespace for each host, and pairs of hosts that can talk.

A *wire* is a link of exactly two hosts; hosts on the *switch* all talk to each other. No host forwards packets, so what
has no wire cannot be reached. Each host has one address, whatever its wires.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.netns.namespaces import batch, cable, inside, late_link, namespaces, nft, run

_NOWHERE = "02:00:00:00:00:01"
"""A hardware address that nobody has: what is sent there is lost, and the sender learns nothing."""
_SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Hosts by name, each with its namespace and address; `wires` has the pairs, `switched` the hosts on the switch."""

    prefix: str
    addresses: Mapping[str, str]
    wires: Sequence[tuple[str, str]]
    switched: Sequence[str]

    def netns(self, host: str) -> str:
        """Return the network namespace of a host."""
        return f"{self.prefix}-{host}"

    def lose(self, host: str, other: str) -> None:
        """Lose everything between two hosts; neither learns of it, and connections stay open."""
        self._both(host, other, f"neigh replace {{address}} lladdr {_NOWHERE} nud permanent dev {{device}}")

    def mend(self, host: str, other: str) -> None:
        """Undo `lose`."""
        self._both(host, other, "neigh del {address} dev {device}")

    def cut(self, host: str, other: str) -> None:
        """Remove the way between two hosts: each is told at once that the other is unreachable."""
        self._both(host, other, "route replace unreachable {address}/32")

    def join(self, host: str, other: str) -> None:
        """Undo `cut`, or use a wire for the first time."""
        self._both(host, other, "route replace {address}/32 dev {device} src {own}")

    def refuse(self, host: str, other: str) -> None:
        """Reset every connection between two hosts, and refuse new ones, as a firewall does."""
        self._filter(host, other, "tcp flags & rst == 0 reject with tcp reset")

    def crawl(self, host: str, other: str) -> None:
        """Let two hosts send less than 1 KiB a second to each other; the rest is lost."""
        self._filter(host, other, "limit rate over 750 bytes/second burst 3000 bytes drop")

    def admit(self, host: str, other: str) -> None:
        """Undo `refuse` or `crawl`."""
        for here in (host, other):
            nft(self.netns(here), "delete table inet harm")

    def slow(self, host: str, other: str, *, mbit: int) -> None:
        """Limit what a host sends to another one, on a wire."""
        shape = f"tbf rate {mbit}mbit burst 128kb latency 200ms"
        run("tc", "-n", self.netns(host), *f"qdisc replace dev to-{other} root {shape}".split())

    def hasten(self, host: str, other: str) -> None:
        """Undo `slow`."""
        run("tc", "-n", self.netns(host), *f"qdisc del dev to-{other} root".split())

    @contextmanager
    def delayed(self, host: str, other: str, *, seconds: float) -> Iterator[None]:
        """Delay everything between two hosts on a wire for the block, in each direction."""
        with late_link(self.netns(host), self.netns(other), seconds=seconds):
            self._both(host, other, "route replace {address}/32 dev late src {own}")
            try:
                yield
            finally:
                self.join(host, other)

    def received(self, host: str, other: str) -> int:
        """Return the bytes that arrived at a host from another one, on a wire."""
        (shown,) = json.loads(run("ip", "-n", self.netns(host), "-j", "-s", "link", "show", "dev", f"to-{other}"))
        return int(shown["stats64"]["rx"]["bytes"])

    def sent_to_switch(self, host: str) -> int:
        """Return the bytes that a host sent to others on the switch."""
        (shown,) = json.loads(run("ip", "-n", self.netns(_SWITCH), "-j", "-s", "link", "show", "dev", host))
        return int(shown["stats64"]["rx"]["bytes"])

    def _filter(self, host: str, other: str, rule: str) -> None:
        for here, there in ((host, other), (other, host)):
            chain = f"type filter hook input priority 0;\nip saddr {self.addresses[there]} {rule}\n"
            nft(self.netns(here), f"table inet harm {{\nchain arriving {{\n{chain}}}\n}}")

    def _both(self, host: str, other: str, command: str) -> None:
        for here, there in ((host, other), (other, host)):
            device = "lan" if here in self.switched and there in self.switched else f"to-{there}"
            own, address = self.addresses[here], self.addresses[there]
            words = command.format(address=address, device=device, own=own).split()
            run("ip", "-n", self.netns(here), *words)


@contextmanager
def network(hosts: Sequence[str], *, wires: Sequence[tuple[str, str]], switched: Sequence[str]) -> Iterator[Network]:
    """Make the hosts and what connects them; a test that cannot is skipped."""
    addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, 1)}
    made = Network(prefix=f"m{secrets.token_hex(3)}", addresses=addresses, wires=wires, switched=switched)
    with namespaces([made.netns(host) for host in (*hosts, _SWITCH)]):
        batch(_commands(made))
        for wire in wires:
            made.join(*wire)
        yield made


def _commands(made: Network) -> Iterator[str]:
    switch = made.netns(_SWITCH)
    yield from inside(switch, "link add lan type bridge", "link set lan up")
    for host, address in made.addresses.items():
        yield from inside(made.netns(host), f"addr add {address}/32 dev lo")
    for host, other in made.wires:
        yield from cable((made.netns(host), f"to-{other}"), (made.netns(other), f"to-{host}"))
    for host in made.switched:
        yield from cable((made.netns(host), "lan"), (switch, host))
        yield from inside(switch, f"link set dev {host} master lan")
        for other in made.switched:
            if other != host:
                own, address = made.addresses[host], made.addresses[other]
                yield from inside(made.netns(host), f"route add {address}/32 dev lan src {own}")
