"""Whether the tasks of an origin can be brought to this machine, and which machines could not be reached.

An executor that no task stream can reach denies `unreachable` before it grants anything, so the search goes on to the
next candidate. It knows from the request which roots the origin trusts, and which vouch for the origin. Where that does
not tell, the stream fails, and the origin names the executor in its next requests: by a digest, so that only the
executor itself learns who is meant.
"""

import hashlib

from messiahs.core.interface.messages import SchedRequest, TaskRequest
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.model.trust import trust_each_other, trusts
from messiahs.core.state.module import ModuleState

AVOIDED_NS = 5 * MINUTE
"""How long an executor is asked for no place after its task stream failed."""
AVOIDED_LIMIT = 64
_DIGEST_BYTES = 16


def why_unreachable(state: ModuleState, request: SchedRequest) -> str:
    """Say why tasks of a request's origin could not come to the own machine; empty if they can, or nobody knows."""
    if request.avoids and digest_of(state.system, request.search) in request.avoids:
        return f"{request.origin} could not reach this machine a short while ago"
    # With a neighbor the roots are those of the link, over which it could be heard.
    return "" if request.origin in state.neighbors else why_untrusted(state, request)


def why_untrusted(state: ModuleState, request: SchedRequest | TaskRequest) -> str:
    """Say why the origin of a request and the systems of this site do not trust each other; empty if they may do so."""
    origin = request.origin if isinstance(request, SchedRequest) else request.requester
    if origin == state.system or trust_each_other(state.identity.trust, request.trust):
        return ""
    if trusts(state.identity.trust, request.trust):
        return f"{origin} does not trust the root that vouches for this system"
    return f"the root that vouches for {origin} is not trusted here"


def avoid(state: ModuleState, executor: SystemId, now: Instant) -> None:
    """Ask an executor for no places for a while: its task stream failed."""
    avoided = state.origin.avoided
    avoided.pop(executor, None)
    avoided[executor] = after(now, AVOIDED_NS)
    if len(avoided) > AVOIDED_LIMIT:
        del avoided[next(iter(avoided))]


def is_avoided(state: ModuleState, executor: SystemId, now: Instant) -> bool:
    """Say whether an executor is to be asked for no places now."""
    until = state.origin.avoided.get(executor)
    return until is not None and now < until


def avoided_in(state: ModuleState, search: SearchId, now: Instant) -> tuple[bytes, ...]:
    """Name the executors that are to be avoided, in the way of one search; the others are forgotten."""
    avoided = state.origin.avoided
    for executor in [each for each in avoided if not is_avoided(state, each, now)]:
        del avoided[executor]
    return tuple(digest_of(executor, search) for executor in avoided)


def digest_of(executor: SystemId, search: SearchId) -> bytes:
    """Name an executor so that only those who know its name recognize it, and only in this search."""
    return hashlib.sha256(search + executor.encode()).digest()[:_DIGEST_BYTES]
