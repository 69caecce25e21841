"""What the own machine offers now: measured, less what claims were promised (MESSIAHS 5.1).

A claim reserves slots, memory and disk for its places the moment it is granted, so the next vector shows less at once.
An attempt that its machine's owner suspends gives up its slots, but not its memory and disk.
"""

from messiahs.core.model.attributes import OWNERS_FACTS, Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.executor import GrantedClaim, Guard, Reservation
from messiahs.core.state.module import ModuleState

_FULL_SHARE = 10_000


def own_sdv(state: ModuleState) -> SDV | None:
    """Give the description of the own machine, None if the system has none or it was not measured yet.

    What only the owner's policy may know of it is left out. What is being gathered for a reservation is not free; it is
    shown once there is enough of it, so that the origin for which it is reserved learns of it.
    """
    said, reservation = _described(state), state.executor.reservation
    if said is None:
        return None
    if reservation is not None and not _has_enough(said, reservation):
        _withhold(said, reservation)
    return SDV(sorted_pairs(said))


def free_here(state: ModuleState, *, uses_reserved: bool) -> dict[str, Value] | None:
    """Describe the own machine with what is free for those who may use what is reserved, or for all others."""
    said, reservation = _described(state), state.executor.reservation
    if said is not None and reservation is not None and not uses_reserved:
        _withhold(said, reservation)
    return said


def is_ready(state: ModuleState, reservation: Reservation) -> bool:
    """Say whether all that is reserved is free."""
    said = _described(state)
    return said is not None and _has_enough(said, reservation)


def _described(state: ModuleState) -> dict[str, Value] | None:
    measured = state.updates.measured
    if measured is None:
        return None
    said = {name: value for name, value in measured.pairs if name not in OWNERS_FACTS}
    claims = reserving_claims(state)
    slots = said.get("slots")
    if isinstance(slots, int):
        promised = promised_slots(state, slots)
        said["free_slots"] = max(0, slots - promised - _awaited_slots(state))
        said["utilization"] = min(_FULL_SHARE, promised * _FULL_SHARE // slots) if slots else _FULL_SHARE
    _lower(said, "avail_mem", "total_mem", sum(reserved_places(claim) * claim.need.mem_bytes for claim in claims))
    _lower(said, "avail_disk", "total_disk", sum(reserved_places(claim) * claim.need.disk_bytes for claim in claims))
    said["queue_length"] = sum(claim.live - len(claim.started) for claim in claims)
    said["wait_time"] = state.executor.mean_wait_ns // SECOND
    return said


def _reserved(reservation: Reservation) -> tuple[tuple[str, int], ...]:
    amounts = (reservation.slots, reservation.mem_bytes, reservation.disk_bytes)
    return tuple(zip(("free_slots", "avail_mem", "avail_disk"), amounts, strict=True))


def _has_enough(said: dict[str, Value], reservation: Reservation) -> bool:
    values = ((said.get(name), amount) for name, amount in _reserved(reservation))
    return all(isinstance(value, int) and value >= amount for value, amount in values if amount)


def _withhold(said: dict[str, Value], reservation: Reservation) -> None:
    for name, amount in _reserved(reservation):
        value = said.get(name)
        if isinstance(value, int):
            said[name] = max(0, value - amount)


def seen_by_owner(state: ModuleState) -> SDV | None:
    """Give what `own_sdv` says, and what only the owner's policy may know."""
    said, measured = own_sdv(state), state.updates.measured
    if said is None or measured is None:
        return said
    facts = [pair for pair in measured.pairs if pair[0] in OWNERS_FACTS]
    return SDV(tuple(sorted((*said.pairs, *facts)))) if facts else said


def reserving_claims(state: ModuleState) -> tuple[GrantedClaim, ...]:
    """Give the claims that take places of the own machine."""
    return (*state.executor.claims.values(), *state.executor.released.values())


def reserved_places(claim: GrantedClaim) -> int:
    """How many places a claim takes: none any more if it ends, but for those whose attempts still run."""
    return min(claim.row.places, claim.live) if claim.is_ending else claim.row.places


def promised_slots(state: ModuleState, slots: int, *, woken: int = 0) -> int:
    """Give how many of the machine's slots claims hold; those of suspended attempts are others' meanwhile.

    No more of them are given up than the machine has: else tasks could come and be suspended without end. `woken` is
    how many of them are counted as if they ran.
    """
    claims = reserving_claims(state)
    promised = sum(reserved_places(claim) * claim.need.slots for claim in claims)
    return promised - min(slots, sum(claim.suspended * claim.need.slots for claim in claims) - woken)


def has_room_for(state: ModuleState, guard: Guard) -> bool:
    """Say whether a suspended attempt could run now."""
    measured = state.updates.measured
    slots = measured.description().get("slots") if measured is not None else None
    return isinstance(slots, int) and promised_slots(state, slots, woken=guard.slots) <= slots


def wake(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> bool:
    """Let a suspended attempt take its slots again; False, and nothing happens, if it cannot have them now.

    One that runs has them anyway.
    """
    guard = state.executor.guards.get(attempt)
    if guard is None or guard.suspended_at is None:
        return True
    if not has_room_for(state, guard):
        return False
    guard.paused_ns += now - guard.suspended_at
    guard.suspended_at, guard.is_waiting = None, False
    claim.suspended -= 1
    return True


def _awaited_slots(state: ModuleState) -> int:
    """Return the slots needed by suspended attempts waiting to resume; they precede new work."""
    return sum(guard.slots for guard in state.executor.guards.values() if guard.is_waiting)


def _lower(said: dict[str, Value], available: str, total: str, promised: int) -> None:
    measured, installed = said.get(available), said.get(total)
    if isinstance(measured, int) and isinstance(installed, int):
        said[available] = max(0, min(measured, installed - promised))
