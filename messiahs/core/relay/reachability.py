"""Executors that no way of an origin's tasks has reached lately.

The path of a claim leads to its executor whether or not both ends trust each other. If the streams on it fail
nevertheless, the next requests of the origin name the executor by a digest, which only the executor itself can
recognize. It then denies `unreachable` before it grants anything, and the search continues with the next candidate.
"""

import hashlib

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.state.module import ModuleState

AVOIDED_NS = 5 * MINUTE
"""How long an executor is avoided after its task stream failed."""
AVOIDED_LIMIT = 64
_DIGEST_BYTES = 16


def why_unreachable(state: ModuleState, request: SchedRequest) -> str:
    """Return why tasks of a request's origin cannot reach this machine; empty if they can, or if that is unknown."""
    if request.avoids and digest_of(state.system, request.search) in request.avoids:
        return f"{request.origin} could not reach this machine a short while ago"
    return ""


def avoid(state: ModuleState, executor: SystemId, now: Instant) -> None:
    """Request no places from an executor for a while, because its task stream failed."""
    avoided = state.origin.avoided
    avoided.pop(executor, None)
    avoided[executor] = after(now, AVOIDED_NS)
    if len(avoided) > AVOIDED_LIMIT:
        del avoided[next(iter(avoided))]


def is_avoided(state: ModuleState, executor: SystemId, now: Instant) -> bool:
    """Return whether an executor is avoided now."""
    until = state.origin.avoided.get(executor)
    return until is not None and now < until


def avoided_in(state: ModuleState, search: SearchId, now: Instant) -> tuple[bytes, ...]:
    """Return the digests, for one search, of the executors to avoid; the others are forgotten."""
    avoided = state.origin.avoided
    for executor in [each for each in avoided if not is_avoided(state, each, now)]:
        del avoided[executor]
    return tuple(digest_of(executor, search) for executor in avoided)


def digest_of(executor: SystemId, search: SearchId) -> bytes:
    """Return a digest that identifies an executor in one search to those who know its name, and to no one else."""
    return hashlib.sha256(search + executor.encode()).digest()[:_DIGEST_BYTES]
