"""The topology of a federation: which systems there are, and who is whose parent (MESSIAHS 5, 7.3).

An administrator writes it as YAML. `load_topology` reads and checks a file; every problem in it is told at once.
"""

from dataclasses import dataclass
from pathlib import Path

from messiahs.config.settings import MachineSettings
from messiahs.core.ids import SystemId
from messiahs.core.instants import SECOND
from messiahs.errors import MessiahsError


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One autonomous system; with at least one parent, exactly one of them is the primary parent.

    `host` and `port` are both given or both None: where the module listens when it runs in production.
    """

    name: SystemId
    parents: tuple[SystemId, ...] = ()
    primary_parent: SystemId | None = None
    machine: MachineSettings | None = None
    host: str | None = None
    port: int | None = None


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


def load_topology(path: Path) -> Topology:
    """Read and check a topology file; a `TopologyError` holds every problem as `FILE:LINE:COLUMN: text`."""
    # ruamel.yaml and networkx are heavy, and a daemon or a `messiahs submit` never needs them.
    from messiahs.config.topology_reading import read_topology  # noqa: PLC0415 # see above

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MessiahsError(f"{path}: the topology cannot be read: {error}") from error
    return read_topology(text, str(path))
