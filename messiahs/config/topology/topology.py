"""The topology of a federation: which systems there are, and who is whose parent (MESSIAHS 5, 7.3).

An administrator writes it as YAML. `load_topology` reads and checks a file; every problem in it is told at once.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from messiahs.config.settings import MachineSettings
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.errors import MessiahsError


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One autonomous system; with at least one parent, exactly one of them is the primary parent.

    `host` and `port` are both given or both None: where the module listens when it runs in production. An external
    system is run from another site's file: here it has neither machine nor policy. Only it can have a `trust_file`
    with the roots that vouch for it (None: this site's own).
    """

    name: SystemId
    parents: tuple[SystemId, ...] = ()
    primary_parent: SystemId | None = None
    machine: MachineSettings | None = None
    host: str | None = None
    port: int | None = None
    reach: str = "open"
    policy_file: Path | None = None
    is_external: bool = False
    trust_file: Path | None = None

    @property
    def address(self) -> str | None:
        """Give host:port, an IPv6 address in brackets; None if the file does not say it."""
        if self.host is None or self.port is None:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A checked topology: names are unique, every parent exists and nobody is an ancestor of itself."""

    federation: str
    systems: tuple[System, ...]
    update_period_ns: int = 2 * SECOND

    def system(self, name: str) -> System:
        """Give the system with this name; a `MessiahsError` lists those that there are."""
        for system in self.systems:
            if system.name == name:
                return system
        names = ", ".join(system.name for system in self.systems)
        raise MessiahsError(f"the topology has no system `{name}`; it has {names}")

    @property
    def externals(self) -> tuple[System, ...]:
        """Give the systems that are run from another site's file."""
        return tuple(system for system in self.systems if system.is_external)

    def without_externals(self) -> "Topology":
        """Give what is left if no other site can be reached; the first parent that stays may become the primary."""
        gone = {system.name for system in self.externals}
        return replace(
            self, systems=tuple(_without(system, gone) for system in self.systems if system.name not in gone)
        )


def _without(system: System, gone: set[SystemId]) -> System:
    parents = tuple(parent for parent in system.parents if parent not in gone)
    primary = system.primary_parent if system.primary_parent in parents else next(iter(parents), None)
    return replace(system, parents=parents, primary_parent=primary)
