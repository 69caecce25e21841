"""The free resources of the own machine: those measured, less those promised to claims (MESSIAHS 5.1).

A claim reserves slots, memory, disk and counted things for its places the moment it is granted, so the next vector
already shows less. An attempt suspended by the owner gives up its slots, but nothing else.
"""

from collections.abc import Iterator, Mapping

from messiahs.core.model.attributes import OWNERS_FACTS, Value
from messiahs.core.model.counted import free
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.instants import SECOND
from messiahs.core.state.executor import GrantedClaim, Guard, Reservation
from messiahs.core.state.module import ModuleState

_FULL_SHARE = 10_000
_FULL_THOUSANDTHS = 1_000


def own_sdv(state: ModuleState) -> SDV | None:
    """Return the description of the own machine; None if the system has none, or none was measured yet.

    Facts reserved for the owner's policy are left out. Resources being gathered for a reservation do not count as free
    until there are enough of them; then they are shown, so that the origin with the reservation learns of them.
    """
    here, reservation = _described(state), state.executor.reservation
    if here is None:
        return None
    if reservation is not None and any(_shortages(here, reservation)):
        _withhold(here, reservation)
    return SDV(sorted_pairs(here))


def free_here(state: ModuleState, *, uses_reserved: bool) -> dict[str, Value] | None:
    """Return the description of the own machine, with reserved resources counted as free only if `uses_reserved`."""
    here, reservation = _described(state), state.executor.reservation
    if here is not None and reservation is not None and not uses_reserved:
        _withhold(here, reservation)
    return here


def missing_for(state: ModuleState, reservation: Reservation) -> int:
    """Return what is not free yet of a reservation, in thousandths of each resource, rounded up; 0: all is free."""
    here = _described(state) or {}
    return sum(-(-_FULL_THOUSANDTHS * short // amount) for amount, short in _shortages(here, reservation))


def _described(state: ModuleState) -> dict[str, Value] | None:
    measured = state.updates.measured
    if measured is None:
        return None
    here = {name: value for name, value in measured.pairs if name not in OWNERS_FACTS}
    claims = reserving_claims(state)
    slots = here.get("slots")
    if isinstance(slots, int):
        promised = promised_slots(state, slots)
        here["free_slots"] = max(0, slots - promised - _awaited_slots(state))
        here["utilization"] = min(_FULL_SHARE, promised * _FULL_SHARE // slots) if slots else _FULL_SHARE
    _lower(here, "avail_mem", "total_mem", sum(reserved_places(claim) * claim.need.mem_bytes for claim in claims))
    _lower(here, "avail_disk", "total_disk", sum(reserved_places(claim) * claim.need.disk_bytes for claim in claims))
    for things in state.updates.counted:
        promised = sum(reserved_places(claim) * dict(claim.need.uses).get(things.name, 0) for claim in claims)
        here[things.name] = len(things.numbers)
        here[free(things.name)] = max(0, len(things.numbers) - promised)
    here["queue_length"] = sum(claim.live - len(claim.started) for claim in claims)
    here["wait_time"] = state.executor.mean_wait_ns // SECOND
    return here


def _reserved(reservation: Reservation) -> tuple[tuple[str, int], ...]:
    amounts = (reservation.slots, reservation.mem_bytes, reservation.disk_bytes)
    counted = ((free(name), amount) for name, amount in reservation.uses)
    return (*zip(("free_slots", "avail_mem", "avail_disk"), amounts, strict=True), *counted)


def _shortages(here: Mapping[str, Value], reservation: Reservation) -> Iterator[tuple[int, int]]:
    """Yield each amount that is reserved and not free, with what is missing of it."""
    for name, amount in _reserved(reservation):
        value = here.get(name)
        available = value if isinstance(value, int) else 0
        if available < amount:
            yield amount, amount - available


def _withhold(here: dict[str, Value], reservation: Reservation) -> None:
    for name, amount in _reserved(reservation):
        value = here.get(name)
        if isinstance(value, int):
            here[name] = max(0, value - amount)


def seen_by_owner(state: ModuleState) -> SDV | None:
    """Return `own_sdv` with the facts that only the owner's policy may know."""
    here, measured = own_sdv(state), state.updates.measured
    if here is None or measured is None:
        return here
    facts = [pair for pair in measured.pairs if pair[0] in OWNERS_FACTS]
    return SDV(tuple(sorted((*here.pairs, *facts)))) if facts else here


def reserving_claims(state: ModuleState) -> tuple[GrantedClaim, ...]:
    """Return the claims that take places of the own machine."""
    return (*state.executor.claims.values(), *state.executor.released.values())


def reserved_places(claim: GrantedClaim) -> int:
    """Return how many places a claim takes: all of them, or for an ending claim those of its running attempts."""
    return min(claim.row.places, claim.live) if claim.is_ending else claim.row.places


def promised_slots(state: ModuleState, slots: int, *, woken: int = 0) -> int:
    """Return how many of the machine's slots claims hold; those of suspended attempts may be lent out.

    At most as many slots as the machine has are lent, or tasks could arrive and be suspended without end. `woken` of
    the suspended slots count as running.
    """
    claims = reserving_claims(state)
    promised = sum(reserved_places(claim) * claim.need.slots for claim in claims)
    return promised - min(slots, sum(claim.suspended * claim.need.slots for claim in claims) - woken)


def has_room_for(state: ModuleState, guard: Guard) -> bool:
    """Return whether a suspended attempt could run now."""
    measured = state.updates.measured
    slots = measured.description().get("slots") if measured is not None else None
    return isinstance(slots, int) and promised_slots(state, slots, woken=guard.slots) <= slots


def _awaited_slots(state: ModuleState) -> int:
    """Return the slots needed by suspended attempts waiting to resume; they precede new work."""
    return sum(guard.slots for guard in state.executor.guards.values() if guard.is_waiting)


def _lower(here: dict[str, Value], available: str, total: str, promised: int) -> None:
    measured, installed = here.get(available), here.get(total)
    if isinstance(measured, int) and isinstance(installed, int):
        here[available] = max(0, min(measured, installed - promised))
