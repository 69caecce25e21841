"""A system of a simulation: what its topology file and its policy say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from messiahs.config.topology.reach import OPEN
from messiahs.core.interface.parts import Policy
from messiahs.core.model.counted import Counted
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_limits import Maxima
from messiahs.core.model.trust import UNKNOWN, OtherRoots, Trust
from messiahs.sim.world.agenda import DriftingClock


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSystem:
    """The parameters of a system; `machine` describes its machine, None if it has none."""

    name: SystemId
    neighbors: tuple[Neighbor, ...]
    machine: SDV | None
    policy: Policy
    clock: DriftingClock = field(default_factory=DriftingClock)
    trust: Trust = UNKNOWN
    apart: Mapping[SystemId, tuple[bytes, ...]] = field(default_factory=dict)
    other_sites: tuple[OtherRoots, ...] = ()
    reach: str = OPEN
    counted: tuple[Counted, ...] = ()
    """The counted things of its machine."""
    maxima: Maxima = field(default_factory=Maxima)
    """The most that one task may have there."""
