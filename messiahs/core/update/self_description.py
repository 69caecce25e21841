"""What the own machine says of itself, and when that has changed enough to be told at once (MESSIAHS 5.1, 5.3.1)."""

from messiahs.core.interface.policies import Policy
from messiahs.core.model.attributes import OWNERS_FACTS, Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import EMPTY, vector_of

_WHOLE = 10_000


def describe(state: ModuleState, now: Instant, *, only_changed: bool) -> bool:
    """Describe the own machine anew; False if it has not changed enough to be worth a vector."""
    described: SDV | None = None
    if state.updates.measured is not None:
        here = SDV(sorted_pairs(own_facts(state, now)))
        described = _public(state.policy.describe_here(here, state.calendar(now)))
    if only_changed and not has_changed(state.updates.described, described, policy=state.policy):
        return False
    state.updates.described = described
    vector = vector_of(described) if described is not None else EMPTY
    is_new = vector != state.updates.own
    state.updates.own = vector
    return is_new


def _public(described: SDV) -> SDV:
    """Leave out what never leaves the machine, whatever the policy says."""
    return SDV(tuple(pair for pair in described.pairs if pair[0] not in OWNERS_FACTS))


def has_changed(before: SDV | None, after: SDV | None, *, policy: Policy) -> bool:
    """Say whether a machine changed so much that its neighbors should know before the period is over.

    That is so if a key, by which machines are told apart and chosen, is in another bucket, or with a policy that names
    a share (1/100 %) if any number changed by more than that. The load, which changes all the time, is no key.
    """
    if before is None or after is None:
        return before != after
    old, new = before.description(), after.description()
    if old.keys() != new.keys() or any(_is_moved(old[key], new[key]) for key in policy.keys if key in new):
        return True
    share = policy.change_share
    return bool(share) and any(_differs(old[name], value, share) for name, value in new.items())


def _is_moved(old: Value, new: Value) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return bucket_of(old) != bucket_of(new)


def _differs(old: Value, new: Value, share: int) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return abs(new - old) * _WHOLE > share * max(abs(old), abs(new))
