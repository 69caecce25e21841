"""The topology of a federation: its systems and their parents (MESSIAHS 5, 7.3).

An administrator writes it as YAML. `load_topology` reads and checks a file, and reports all problems at once.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from messiahs.config.settings import (
    ByteSettings,
    ConnectionSettings,
    MachineSettings,
    MetricsSettings,
    OtlpSettings,
    TrustedFile,
)
from messiahs.config.topology.reach import OPEN, is_border
from messiahs.config.topology.simulated_links import Links
from messiahs.core.interface.limits import SIBLINGS
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.errors import MessiahsError


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One autonomous system. If it has parents, exactly one of them is the primary parent.

    `host` and `port`, both or neither, are where the module listens in production, and `bulk_port` is where it listens
    for the bytes of large files (None: any free port). Nobody dials a system with `reach: outbound`. An external system
    is run from another site's file: here it has neither machine nor policy. Only an external system can have `trust`,
    the roots that vouch for it (empty: this site's roots). `users` are the accounts of its host that may use it (empty:
    as for the account that runs it). It posts ends of tasks to `webhook_hosts` alone. It serves
    metrics only with `metrics`, and sends spans only with `otlp`.
    """

    name: SystemId
    parents: tuple[SystemId, ...] = ()
    primary_parent: SystemId | None = None
    machine: MachineSettings | None = None
    byte_limits: ByteSettings = field(default_factory=ByteSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)
    host: str | None = None
    port: int | None = None
    bulk_port: int | None = None
    reach: str = OPEN
    policy_file: Path | None = None
    is_external: bool = False
    trust: tuple[TrustedFile, ...] = ()
    users: str = ""
    webhook_hosts: tuple[str, ...] = ()
    metrics: MetricsSettings | None = None
    otlp: OtlpSettings | None = None

    @property
    def is_border(self) -> bool:
        """Whether it is the border of the systems below it."""
        return is_border(self)

    @property
    def address(self) -> str | None:
        """Return host:port, with an IPv6 address in brackets; None if the file does not give it."""
        if self.host is None or self.port is None:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A checked topology: names are unique, every parent exists, and no system is its own ancestor.

    A module has direct links to at most `siblings` siblings. `introductions` are roots of other sites that vouch for
    systems without a link. With `trusts_relays`, modules of third sites may pass bytes on that they can read and alter.
    """

    federation: str
    systems: tuple[System, ...]
    update_period_ns: int = 2 * SECOND
    siblings: int = SIBLINGS
    introductions: tuple[TrustedFile, ...] = ()
    trusts_relays: bool = False
    simulated_links: Links = field(default_factory=dict)
    """What some links cost in a simulation."""

    def system(self, name: str) -> System:
        """Return the system with this name; a `MessiahsError` lists the existing ones."""
        for system in self.systems:
            if system.name == name:
                return system
        names = ", ".join(system.name for system in self.systems)
        raise MessiahsError(f"the topology has no system `{name}`; it has {names}")

    @property
    def externals(self) -> tuple[System, ...]:
        """Return the systems that are run from other sites' files."""
        return tuple(system for system in self.systems if system.is_external)

    def without_externals(self) -> "Topology":
        """Return the topology without external systems; the first remaining parent replaces a primary one."""
        gone = {system.name for system in self.externals}
        systems = tuple(_without(system, gone) for system in self.systems if system.name not in gone)
        return replace(self, systems=systems, introductions=())


def _without(system: System, gone: set[SystemId]) -> System:
    parents = tuple(parent for parent in system.parents if parent not in gone)
    primary = system.primary_parent if system.primary_parent in parents else next(iter(parents), None)
    return replace(system, parents=parents, primary_parent=primary)
