"""The description of the own machine, and whether a change of it is sent at once (MESSIAHS 5.1, 5.3.1)."""

from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import OwnChange
from messiahs.core.model.attributes import OWNERS_FACTS, Value
from messiahs.core.model.counted import free
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.update.histories import note_own
from messiahs.core.vectors.vectors import EMPTY, vector_of


def describe(state: ModuleState, now: Instant, *, only_changed: bool) -> bool:
    """Update the description of the own machine, none if it is drained; False if that is not worth sending yet."""
    described = _described(state, now)
    if only_changed and not _is_worth_sending(state, described, now):
        return False
    state.updates.described = described
    return _replace(state, described)


def describe_to_asker(state: ModuleState, now: Instant) -> None:
    """Update the vector of the own machine for a neighbor that asks; others are sent it at the next occasion.

    What they were told last remains the measure of changes that are sent to them at once.
    """
    state.updates.has_changes |= _replace(state, _described(state, now))


def described_now(state: ModuleState, now: Instant) -> SDV | None:
    """Return the description that neighbors would be sent now; nothing changes."""
    return None if _is_unseen(state) else _described_as(state, _facts(state, now), now)


def _described(state: ModuleState, now: Instant) -> SDV | None:
    if _is_unseen(state):
        note_own(state, None, now)
        return None
    facts = _facts(state, now)
    described = _described_as(state, facts, now)
    note_own(state, {**facts, **described.description()}, now)
    return described


def _is_unseen(state: ModuleState) -> bool:
    return state.updates.measured is None or state.membership.drain is not None


def _facts(state: ModuleState, now: Instant) -> dict[str, Value]:
    facts = own_facts(state, now)
    if state.executor.is_withheld:
        # Neighbors ask it last, and learn why it takes nothing.
        facts["free_slots"] = 0
    return facts


def _described_as(state: ModuleState, facts: dict[str, Value], now: Instant) -> SDV:
    here = SDV(sorted_pairs(facts))
    return _public(_with_counted(state, state.policy.disclosure.describe_here(here, state.calendar(now)), here))


def _replace(state: ModuleState, described: SDV | None) -> bool:
    """Replace the vector of the own machine; return whether it is another one."""
    vector = vector_of(described) if described is not None else EMPTY
    is_new = vector != state.updates.own
    state.updates.own = vector
    return is_new


def _is_worth_sending(state: ModuleState, described: SDV | None, now: Instant) -> bool:
    """Return whether neighbors should know of the change before the period ends."""
    change = OwnChange(before=state.updates.described, after=described, keys=state.policy.keys, at=now)
    return decide(state, PartKind.UPDATE, state.policy.update, change)


def _with_counted(state: ModuleState, described: SDV, here: SDV) -> SDV:
    """Add the attributes of counted things: like slots, and unlike other extensions, the machine always reports them.

    What the policy sets them to stays.
    """
    if not state.updates.counted:
        return described
    names = {name for things in state.updates.counted for name in (things.name, free(things.name))}
    counted = {name: value for name, value in here.pairs if name in names}
    return SDV(sorted_pairs({**counted, **described.description()}))


def _public(described: SDV) -> SDV:
    """Remove the facts that never leave the machine, whatever the policy says."""
    return SDV(tuple(pair for pair in described.pairs if pair[0] not in OWNERS_FACTS))
