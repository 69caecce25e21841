"""Executors that no way of an origin's tasks has reached lately.

The path of a claim leads to its executor whether or not both ends trust each other. If the streams on it fail
nevertheless, the next requests of the origin name the executor by a digest, which only the executor itself can
recognize. It then denies `unreachable` before it grants anything, and the search continues with the next candidate.
One that was only not answered is asked again after a short pause, which grows, or when the link toward it is up again.
"""

import hashlib
from dataclasses import replace

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.ways import Avoided, pause_after

AVOIDED_LIMIT = 64
_DIGEST_BYTES = 16


def why_unreachable(state: ModuleState, request: SchedRequest) -> str:
    """Return why tasks of a request's origin cannot reach this machine; empty if they can, or if that is unknown."""
    if request.avoids and digest_of(state.system, request.search) in request.avoids:
        return f"{request.origin} could not reach this machine a short while ago"
    return ""


def avoid(state: ModuleState, executor: SystemId, /, *, via: SystemId, is_final: bool, now: Instant) -> None:
    """Request no places from an executor through a neighbor for a while, because its task stream failed.

    A failure is final for lack of trust: another try would repeat it. Through other neighbors the executor is asked as
    before: this one may have given another system's name to its own machine.
    """
    avoided = state.origin.avoided
    before = avoided.pop((via, executor), None)
    pause = pause_after(None if before is None else before.pause, is_final=is_final, now=now)
    is_final = is_final or (before is not None and before.is_final and pause is before.pause)
    avoided[via, executor] = Avoided(pause=pause, is_final=is_final)
    if len(avoided) > AVOIDED_LIMIT:
        del avoided[next(iter(avoided))]
    watch_avoided(state, now)


def ask_again(state: ModuleState, via: SystemId) -> None:
    """Stop avoiding the executors that did not answer through a neighbor, whose link is up again."""
    avoided = state.origin.avoided
    for key in [key for key, each in avoided.items() if key[0] == via and not each.is_final]:
        del avoided[key]


def is_avoided(state: ModuleState, executor: SystemId, /, *, via: SystemId, now: Instant) -> bool:
    """Return whether places of an executor that come through a neighbor are not taken now."""
    avoided = state.origin.avoided.get((via, executor))
    return avoided is not None and now < avoided.pause.until


def watch_avoided(state: ModuleState, now: Instant) -> None:
    """Set the timeout for the next end of a pause."""
    ends = [each.pause.until for each in state.origin.avoided.values() if now < each.pause.until]
    if ends:
        state.timers.set(TimerKind.AVOIDED, state.system, min(ends))


def avoiding(state: ModuleState, request: SchedRequest, /, *, to: SystemId, now: Instant) -> SchedRequest:
    """Return a request of this origin with the digests of the executors to avoid behind the neighbor that gets it.

    Those avoided long ago are forgotten.
    """
    avoided = state.origin.avoided
    for key in [key for key, each in avoided.items() if each.pause.is_forgotten(now)]:
        del avoided[key]
    names = [executor for via, executor in avoided if via == to and is_avoided(state, executor, via=via, now=now)]
    return replace(request, avoids=tuple(digest_of(name, request.search) for name in names))


def digest_of(executor: SystemId, search: SearchId) -> bytes:
    """Return a digest that identifies an executor in one search to those who know its name, and to no one else."""
    return hashlib.sha256(search + executor.encode()).digest()[:_DIGEST_BYTES]
