"""A network of hosts that a test wires: one network namespace for each host, and pairs of hosts that can talk.

A *wire* is a link of exactly two hosts; hosts on the *switch* all talk to each other. No host forwards packets, so what
has no wire cannot be reached. Each host has one address, whatever its wires. Needs root, `ip`, `tc` and `nft`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

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
            self._nft(here, "delete table inet harm")

    def slow(self, host: str, other: str, *, mbit: int) -> None:
        """Limit what a host sends to another one, on a wire."""
        shape = f"tbf rate {mbit}mbit burst 128kb latency 200ms"
        _run("tc", "-n", self.netns(host), *f"qdisc replace dev to-{other} root {shape}".split())

    def hasten(self, host: str, other: str) -> None:
        """Undo `slow`."""
        _run("tc", "-n", self.netns(host), *f"qdisc del dev to-{other} root".split())

    def received(self, host: str, other: str) -> int:
        """Return the bytes that arrived at a host from another one, on a wire."""
        (shown,) = json.loads(_run("ip", "-n", self.netns(host), "-j", "-s", "link", "show", "dev", f"to-{other}"))
        return int(shown["stats64"]["rx"]["bytes"])

    def sent_to_switch(self, host: str) -> int:
        """Return the bytes that a host sent to others on the switch."""
        (shown,) = json.loads(_run("ip", "-n", self.netns(_SWITCH), "-j", "-s", "link", "show", "dev", host))
        return int(shown["stats64"]["rx"]["bytes"])

    def _filter(self, host: str, other: str, rule: str) -> None:
        for here, there in ((host, other), (other, host)):
            chain = f"type filter hook input priority 0;\nip saddr {self.addresses[there]} {rule}\n"
            self._nft(here, f"table inet harm {{\nchain arriving {{\n{chain}}}\n}}")

    def _nft(self, host: str, rules: str) -> None:
        _run("nsenter", f"--net=/run/netns/{self.netns(host)}", "nft", rules)

    def _both(self, host: str, other: str, command: str) -> None:
        for here, there in ((host, other), (other, host)):
            device = "lan" if here in self.switched and there in self.switched else f"to-{there}"
            own, address = self.addresses[here], self.addresses[there]
            words = command.format(address=address, device=device, own=own).split()
            _run("ip", "-n", self.netns(here), *words)


@contextmanager
def network(hosts: Sequence[str], *, wires: Sequence[tuple[str, str]], switched: Sequence[str]) -> Iterator[Network]:
    """Make the hosts and what connects them; a test that cannot is skipped."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if lacking := [name for name in ("ip", "tc", "nft") if shutil.which(name) is None]:
        pytest.skip(f"there is no {' and no '.join(lacking)} here")
    addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, 1)}
    made = Network(prefix=f"m{os.getpid()}", addresses=addresses, wires=wires, switched=switched)
    everywhere = [made.netns(host) for host in (*hosts, _SWITCH)]
    # A kernel without them says so at the first one.
    first = subprocess.run(["ip", "netns", "add", everywhere[0]], capture_output=True, text=True, check=False)
    if first.returncode:
        pytest.skip(f"network namespaces cannot be made here: {first.stderr.strip()}")
    try:
        _batch([f"netns add {name}" for name in everywhere[1:]])
        _batch(_commands(made))
        for wire in wires:
            made.join(*wire)
        yield made
    finally:
        _batch([f"netns del {name}" for name in everywhere])


def _commands(made: Network) -> Iterator[str]:
    switch = made.netns(_SWITCH)
    yield from _inside(switch, "link set lo up", "link add lan type bridge", "link set lan up")
    for host, address in made.addresses.items():
        yield from _inside(made.netns(host), "link set lo up", f"addr add {address}/32 dev lo")
    for host, other in made.wires:
        yield from _cable((made.netns(host), f"to-{other}"), (made.netns(other), f"to-{host}"))
    for host in made.switched:
        yield from _cable((made.netns(host), "lan"), (switch, host))
        yield from _inside(switch, f"link set {host} master lan")
        for other in made.switched:
            if other != host:
                own, address = made.addresses[host], made.addresses[other]
                yield from _inside(made.netns(host), f"route add {address}/32 dev lan src {own}")


def _cable(one: tuple[str, str], other: tuple[str, str]) -> Iterator[str]:
    """Connect two devices, each in its namespace."""
    (netns, device), (peer_netns, peer) = one, other
    yield f"link add {device} netns {netns} type veth peer name {peer} netns {peer_netns}"
    yield from _inside(netns, f"link set {device} up")
    yield from _inside(peer_netns, f"link set {peer} up")


def _inside(netns: str, *commands: str) -> Iterator[str]:
    yield from (f"-n {netns} {command}" for command in commands)


def _batch(commands: Sequence[str] | Iterator[str]) -> None:
    for command in commands:
        _run("ip", *command.split())


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
