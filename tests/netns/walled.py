"""Sites behind firewalls: a network namespace for each host, and for the firewall and the provider of each site.

    host --+
    host --+-- lan [firewall] out -- site [provider] world -- [the world] -- the other sites

A firewall accepts what its site begins, the answers to it, and from outside only what the site opens; everything else
is dropped without an answer. With NAT, the hosts have private addresses that mean nothing outside: all that leaves has
the site's public address, and an opened port of that address leads to one host. What harms the way between sites
happens at a provider, or is a firewall that forgets its connections.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.netns.namespaces import batch, cable, inside, late_link, namespaces, nft, run, write

WORLD: Final = "world"
PORTS: Final = (7101, 7102)
"""The ports that a site opens for one of its hosts."""
_PROVIDER: Final = "192.0.2.1"
_WORLD: Final = "192.0.2.2"
"""Addresses of each provider, and of the network between them; nobody else sees them."""


class Way(StrEnum):
    """A direction, seen from a site; the value is the device of the site's provider on which packets arrive."""

    OUTWARD = "site"
    INWARD = "world"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A site: its hosts, the one that others can reach ("": none), and whether its addresses are private."""

    hosts: tuple[str, ...]
    opened: str = ""
    has_nat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walled:
    """Sites with their firewalls; `public` has the present public address of each (mutable).

    The hosts have names, which resolve to the address at which the asking site reaches them.
    """

    prefix: str
    walls: Mapping[str, Wall]
    folder: Path
    public: dict[str, str] = field(default_factory=dict)

    def netns(self, name: str) -> str:
        """Return the namespace of a host, or of the firewall or provider of a site."""
        return f"{self.prefix}-{name}"

    def address(self, host: str) -> str:
        """Return the address of a host in its own site."""
        number, wall = next((n, wall) for n, wall in enumerate(self.walls.values(), 1) if host in wall.hosts)
        return f"10.77.{number}.{wall.hosts.index(host) + 1}"

    def name(self, host: str) -> str:
        """Return the name of a host."""
        return f"{host}.example.org"

    def hosts_file(self, site: str) -> Path:
        """Return the file by which the hosts of a site resolve names."""
        return self.folder / f"{site}.hosts"

    def publish(self) -> None:
        """Let every name resolve to the present address, at every site."""
        for site in self.walls:
            lines = [
                f"{self.address(host) if here == site or not wall.has_nat else self.public[here]} {self.name(host)}\n"
                for here, wall in self.walls.items()
                for host in wall.hosts
            ]
            # In place, since the file is mounted.
            self.hosts_file(site).write_text("127.0.0.1 localhost\n" + "".join(lines))

    def partition(self, site: str, *ways: Way) -> None:
        """Lose everything between a site and the others, in these directions or in both; nobody learns of it."""
        self._harm(site, "drop", *ways)

    def lose(self, site: str, *ways: Way, percent: int) -> None:
        """Lose a part of the packets in these directions."""
        self._harm(site, f"numgen random mod 100 < {percent} drop", *ways)

    def heal(self, site: str) -> None:
        """Undo `partition` or `lose`."""
        nft(self._provider(site), "delete table inet harm")

    def forget(self, site: str) -> None:
        """Let the firewall of a site drop all connections that exist now, without an answer; new ones work."""
        rules = "tcp flags & (syn | ack) == syn ct mark set 1\nmeta l4proto tcp ct mark != 1 drop\n"
        chain = f"chain passing {{\ntype filter hook forward priority -10;\n{rules}}}"
        nft(
            self._firewall(site),
            f"add table inet forgets\ndelete table inet forgets\ntable inet forgets {{\n{chain}\n}}",
        )

    def remember(self, site: str) -> None:
        """Undo `forget`."""
        nft(self._firewall(site), "delete table inet forgets")

    def forget_when_idle(self, site: str, *, seconds: int) -> None:
        """Let the firewall of a site drop connections on which nothing passes for so long, without an answer."""
        for name, value in (("timeout_established", seconds), ("loose", 0)):
            write(self._firewall(site), f"net/netfilter/nf_conntrack_tcp_{name}", value=value)

    def vanish(self, host: str) -> None:
        """Unplug a host."""
        self._plug(host, "down")

    def appear(self, host: str) -> None:
        """Plug a host in again."""
        self._plug(host, "up")

    def renumber(self, site: str, address: str) -> None:
        """Give a site with NAT another public address; the old one leads nowhere, and names still resolve to it."""
        before, self.public[site] = self.public[site], address
        firewall, provider = self._firewall(site), self._provider(site)
        commands = (
            *inside(firewall, f"addr del {before}/32 dev out", f"addr add {address}/32 dev out"),
            *inside(firewall, f"route replace default via {_PROVIDER} dev out onlink src {address}"),
            *inside(provider, f"route del {before}/32"),
            *inside(self._world, f"route del {before}/32"),
            *self._inward(site),
            *self._outward(site),
        )
        batch(commands)

    @contextmanager
    def delayed(self, site: str, *, seconds: float) -> Iterator[None]:
        """Delay everything between a site and the others for the block, in each direction."""
        with late_link(self._provider(site), self._world, seconds=seconds):
            batch(self._late(site))
            try:
                yield
            finally:
                batch(self._outward(site))

    def received(self, site: str) -> int:
        """Return the bytes that have arrived at the firewall of a site from outside."""
        (shown,) = json.loads(run("ip", "-n", self._firewall(site), "-j", "-s", "link", "show", "dev", "out"))
        return int(shown["stats64"]["rx"]["bytes"])

    def counted(self, site: str, counter: str) -> int:
        """Return the packets that a firewall counted: `knocked` (wanted to begin a connection) or `admitted`."""
        shown = json.loads(nft(self._firewall(site), "-j", f"list counter inet wall {counter}"))
        (found,) = [each["counter"] for each in shown["nftables"] if "counter" in each]
        return int(found["packets"])

    def _harm(self, site: str, rule: str, *ways: Way) -> None:
        rules = "\n".join(f"iifname {way} {rule}" for way in ways or Way)
        chain = f"chain passing {{\ntype filter hook forward priority 0;\n{rules}\n}}"
        nft(self._provider(site), f"table inet harm {{\n{chain}\n}}")

    def _plug(self, host: str, state: str) -> None:
        site = next(site for site, wall in self.walls.items() if host in wall.hosts)
        batch(inside(self._firewall(site), f"link set dev {host} {state}"))

    def _firewall(self, site: str) -> str:
        return self.netns(f"wall-{site}")

    def _provider(self, site: str) -> str:
        return self.netns(f"net-{site}")

    def commands(self) -> Iterator[str]:
        """Yield what connects the namespaces, as commands of `ip`."""
        yield from inside(self._world, f"addr add {_WORLD}/32 dev lo")
        for number, (site, wall) in enumerate(self.walls.items(), 1):
            firewall, provider = self._firewall(site), self._provider(site)
            self.public[site] = f"198.51.100.{number}"
            yield from inside(firewall, "link add lan type bridge", "link set lan up")
            yield from inside(firewall, f"addr add 10.77.{number}.254/24 dev lan")
            yield from cable((firewall, "out"), (provider, Way.OUTWARD))
            yield from inside(firewall, f"addr add {self.public[site]}/32 dev out")
            yield from inside(firewall, f"route add default via {_PROVIDER} dev out onlink src {self.public[site]}")
            yield from inside(provider, f"addr add {_PROVIDER}/32 dev lo")
            yield from self._inward(site)
            for host in wall.hosts:
                netns = self.netns(host)
                yield from cable((netns, "lan"), (firewall, host))
                yield from inside(firewall, f"link set dev {host} master lan")
                yield from inside(netns, f"addr add {self.address(host)}/24 dev lan")
                yield from inside(netns, f"route add default via 10.77.{number}.254")
            yield from cable((provider, Way.INWARD), (self._world, site))
            yield from self._outward(site)

    @property
    def _world(self) -> str:
        return self.netns(WORLD)

    def _networks(self, site: str) -> Sequence[str]:
        """Return what leads to a site from outside."""
        number = list(self.walls).index(site) + 1
        lan = () if self.walls[site].has_nat else (f"10.77.{number}.0/24",)
        return f"{self.public[site]}/32", *lan

    def _inward(self, site: str) -> Iterator[str]:
        """Lead from a site's provider to the site."""
        for network in self._networks(site):
            via = f"via {self.public[site]} dev {Way.OUTWARD} onlink"
            yield from inside(self._provider(site), f"route replace {network} {via}")

    def _outward(self, site: str) -> Iterator[str]:
        """Connect a site's provider with the world."""
        yield from inside(self._provider(site), f"route replace default via {_WORLD} dev {Way.INWARD} onlink")
        for network in self._networks(site):
            yield from inside(self._world, f"route replace {network} via {_PROVIDER} dev {site} onlink")

    def _late(self, site: str) -> Iterator[str]:
        """Connect a site's provider with the world through the relay that delays."""
        yield from inside(self._provider(site), "route replace default dev late")
        for network in self._networks(site):
            yield from inside(self._world, f"route replace {network} dev late")

    def rules(self, site: str) -> str:
        """Return what the firewall of a site does."""
        wall = self.walls[site]
        opened = (
            f"ip daddr {self.address(wall.opened)} tcp dport {{ {', '.join(map(str, PORTS))} }}" if wall.opened else ""
        )
        admitting = f"iifname out {opened} counter name admitted accept" if opened else ""
        rules = f"""
table inet wall {{
  counter knocked {{ }}
  counter admitted {{ }}
  chain arriving {{
    type filter hook input priority 0; policy drop;
    iifname lo accept
  }}
  chain passing {{
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname out tcp flags & (syn | ack) == syn counter name knocked
    iifname lan accept
    {admitting}
  }}
}}
"""
        if not wall.has_nat:
            return rules
        ports = ", ".join(map(str, PORTS))
        leading = f"iifname out tcp dport {{ {ports} }} dnat to {self.address(wall.opened)}" if wall.opened else ""
        return (
            rules
            + f"""
table ip nat {{
  chain arriving {{
    type nat hook prerouting priority -100;
    {leading}
  }}
  chain leaving {{
    type nat hook postrouting priority 100;
    oifname out masquerade
  }}
}}
"""
        )


@contextmanager
def walled(walls: Mapping[str, Wall], folder: Path) -> Iterator[Walled]:
    """Make sites with their firewalls; a test that cannot is skipped."""
    made = Walled(prefix=f"w{secrets.token_hex(3)}", walls=walls, folder=folder)
    routers = [made.netns(WORLD), *(made.netns(f"{kind}-{site}") for kind in ("wall", "net") for site in walls)]
    hosts = [made.netns(host) for wall in walls.values() for host in wall.hosts]
    with namespaces([*routers, *hosts]):
        batch(made.commands())
        made.publish()
        for router in routers:
            write(router, "net/ipv4/ip_forward", value=1)
        for site in walls:
            nft(made.netns(f"wall-{site}"), made.rules(site))
        yield made
