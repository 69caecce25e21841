"""The way of a claim's bytes: tasks, inputs, outputs and logs (MESSIAHS 5.3.3: directly, or by proxy transfer).

At each module that holds or passes on a claim, bytes take one leg: straight to the server of the claim, or along the
path on which the claim was granted.
"""

from dataclasses import dataclass

from messiahs.core.model.ids import ClaimId, SystemId, Ticket

DIALER_LIMIT = 16
"""Systems that may use one ticket beside the neighbor through which the claim was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceEnd:
    """The system to which a hop of a third site passes connections on, and the ticket that it expects."""

    system: SystemId
    ticket: Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """The way to a system through a third party's module, which passes a connection on without being able to read it.

    The module at `address` expects the claim and its ticket. Connections may be shared by all claims that take the same
    `way` between the same systems.
    """

    hop: SystemId
    address: str
    claim: ClaimId
    ticket: Ticket

    @property
    def way(self) -> str:
        """The hop and its address."""
        return f"{self.hop} {self.address}"

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.hop}, which passes the connection on"


Address = str | Splice


def way_of(address: Address) -> str:
    """Return what addresses have in common between which connections may be shared; no address contains a blank."""
    return address.way if isinstance(address, Splice) else address


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """The next system for the bytes of a claim, the address at which it is dialed, and the ticket that it expects.

    The certificate of the dialed system has to name `system`. Nobody can dial a system without an address (empty): it
    dials the connections for its bytes on request of a neighbor that it can dial.
    """

    system: SystemId
    address: Address
    ticket: Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The two legs of a claim: `path` leads to the neighbor toward the executor.

    `straight` leads to the server of the claim: its executor, or the last hop that took the executor's place. Without a
    shortcut the two are equal.
    """

    straight: Leg
    path: Leg

    @property
    def has_shortcut(self) -> bool:
        """Whether the straight leg is another one than the path."""
        return self.straight != self.path
