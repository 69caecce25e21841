"""Stable names and ids for what a border hides: keyed digests, which only the holder of the key can compare.

The same thing has the same pseudonym as long as the border has its key, also after its rows were lost. The key belongs
to the state of the module: a state that begins anew has another one.
"""

import hmac

from messiahs.core.model.ids import ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.places import PLACE_BYTES, Machine
from messiahs.core.state.module import ModuleState

_NUMBER_BITS = 62
_EPOCH_BYTES = 8
_USER_BYTES = 8


def shown_user(state: ModuleState, user: str, *, home: str, to: SystemId) -> str:
    """Return the pseudonym of a user for one neighbor; the same name at two homes is two users."""
    return "user-" + _digest(state, "user", to, home, user)[:_USER_BYTES].hex()


def shown_claim(state: ModuleState, claim: ClaimId) -> ClaimId:
    """Return the id of a claim for the side that does not see its executor."""
    return ClaimId(state.system, shown_epoch(state), _number(state, "claim", *map(str, claim)))


def shown_submission(state: ModuleState, submission: TaskId) -> TaskId:
    """Return the id of a submission for the side that does not see its origin."""
    return TaskId(state.system, shown_epoch(state), _number(state, "submission", *map(str, submission)))


def shown_place(state: ModuleState, machine: Machine, *, to: SystemId) -> bytes:
    """Return the place of a machine for one neighbor."""
    executor, epoch, place = machine
    return _digest(state, "place", to, executor, str(epoch), place.hex())[:PLACE_BYTES]


def shown_epoch(state: ModuleState) -> Epoch:
    """Return the epoch of all shown ids, in which this module issues no others."""
    return epoch_of_key(state.identity.border_key)


def epoch_of_key(key: bytes) -> Epoch:
    """Return the epoch of all ids that a border with this key shows."""
    return Epoch(int.from_bytes(_keyed(key, "epoch")[:_EPOCH_BYTES]))


def _number(state: ModuleState, *parts: str) -> int:
    return int.from_bytes(_digest(state, *parts)) % (1 << _NUMBER_BITS)


def _digest(state: ModuleState, *parts: str) -> bytes:
    return _keyed(state.identity.border_key, *parts)


def _keyed(key: bytes, *parts: str) -> bytes:
    # The length of each part separates it from the next: names and users may hold any character.
    content = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts)
    return hmac.digest(key, content, "sha256")
