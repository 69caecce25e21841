"""What the own machine offers now: measured, less what claims were promised (MESSIAHS 5.1).

A claim reserves slots, memory and disk for its places the moment it is granted, so the next vector shows less at once.
"""

from messiahs.core.attributes import Value
from messiahs.core.descriptions import SDV, sorted_pairs
from messiahs.core.instants import SECOND
from messiahs.core.state import GrantedClaim, ModuleState

_FULL_SHARE = 10_000


def own_sdv(state: ModuleState) -> SDV | None:
    """Give the description of the own machine, None if the system has none or it was not measured yet."""
    measured = state.updates.measured
    if measured is None:
        return None
    said: dict[str, Value] = measured.description()
    claims = reserving_claims(state)
    slots = said.get("slots")
    if isinstance(slots, int):
        promised = sum(reserved_places(claim) * claim.need.slots for claim in claims)
        said["free_slots"] = max(0, slots - promised)
        said["utilization"] = min(_FULL_SHARE, promised * _FULL_SHARE // slots) if slots else _FULL_SHARE
    _lower(said, "avail_mem", "total_mem", sum(reserved_places(claim) * claim.need.mem_bytes for claim in claims))
    _lower(said, "avail_disk", "total_disk", sum(reserved_places(claim) * claim.need.disk_bytes for claim in claims))
    said["queue_length"] = sum(claim.live - len(claim.started) for claim in claims)
    said["wait_time"] = state.executor.mean_wait_ns // SECOND
    return SDV(sorted_pairs(said))


def reserving_claims(state: ModuleState) -> tuple[GrantedClaim, ...]:
    """Give the claims that take places of the own machine."""
    return (*state.executor.claims.values(), *state.executor.leaving.values())


def reserved_places(claim: GrantedClaim) -> int:
    """How many places a claim takes: none any more if it ends, but for those whose attempts still run."""
    return min(claim.row.places, claim.live) if claim.is_ending else claim.row.places


def _lower(said: dict[str, Value], available: str, total: str, promised: int) -> None:
    measured, installed = said.get(available), said.get(total)
    if isinstance(measured, int) and isinstance(installed, int):
        said[available] = max(0, min(measured, installed - promised))
