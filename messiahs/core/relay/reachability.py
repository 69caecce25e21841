"""Executors that no way of an origin's tasks has reached lately, or that only lose tasks.

The path of a claim leads to its executor whether or not both ends trust each other. If the streams on it fail
nevertheless, the next requests of the origin name the executor by a digest, which only the executor itself can
recognize. It then denies `unreachable` before it grants anything, and the search continues with the next candidate.
One that was only not answered is asked again after a short pause, which grows, or when the link toward it is up again.
One that loses a task before it has delivered a result since the last loss pauses likewise.
A hop of a third site adds the executors whose bytes it does not pass on for an origin with such roots. Machines that
have as many tasks as they may are named in the same way (deliveries.py). One that grants places nevertheless gets its
claim back, by the first hop that can recognize it, and the search continues.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.model.places import Machine, digest_of, machine_of
from messiahs.core.model.trust import Trust
from messiahs.core.relay.deliveries import full_machines
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.state.ways import Avoided, pause_after

AVOIDED_LIMIT = 64
_WAITS: Final = "it has as many tasks as it may until it has delivered more results"


def why_unreachable(state: ModuleState, request: SchedRequest) -> str:
    """Return why tasks of a request's origin cannot reach this machine; empty if they can, or if that is unknown."""
    if request.avoids and digest_of(state.system.encode(), request.search) in request.avoids:
        if any(claim.live and claim.row.origin == request.origin for claim in state.executor.claims.values()):
            return f"{request.origin} has tasks here, and sends more once one of them has delivered its result"
        return f"{request.origin} could not reach this machine a short while ago, or got no results of it"
    return ""


def why_avoided(state: ModuleState, search: Search, accept: SchedAccept, /, *, via: SystemId, now: Instant) -> str:
    """Return why a claim is not taken: its machine should not have granted it; empty if it is taken.

    An origin looks into its own tables, a hop into the digests of the request.
    """
    machine = machine_of(accept.claim, accept.place)
    if search.asker.relation is Relation.SELF:
        if is_avoided(state, machine, via=via, now=now):
            return "it was not reached, or only lost tasks, a short while ago"
        return _WAITS if machine.mark in full_machines(state, via) else ""
    is_named = _is_named(search, machine.mark)
    return "its machine has granted places although the request leaves it out" if is_named else ""


def avoided_last(
    state: ModuleState, search: Search, systems: Iterable[SystemId], /, *, now: Instant
) -> tuple[SystemId, ...]:
    """Return neighbors in their order, each once, with those last whose own machines are to be avoided."""
    return tuple(sorted(dict.fromkeys(systems), key=lambda system: is_last(state, search, system, now=now)))


def is_last(state: ModuleState, search: Search, system: SystemId, /, *, now: Instant) -> bool:
    """Return whether a neighbor is asked after all others, because its own machine is to be avoided."""
    mark = system.encode()
    if search.asker.relation is not Relation.SELF:
        return _is_named(search, mark)
    avoided = state.origin.avoided.get((system, mark))
    return (avoided is not None and now < avoided.pause.until) or mark in full_machines(state, system)


def _is_named(search: Search, mark: bytes) -> bool:
    request = search.request
    return isinstance(request, SchedRequest) and digest_of(mark, request.search) in request.avoids


def avoid(state: ModuleState, machine: Machine, /, *, via: SystemId, is_final: bool, now: Instant) -> None:
    """Request no places on a machine through a neighbor for a while: its task stream failed, or it only loses tasks.

    A failure is final for lack of trust: another try would repeat it. Through other neighbors the executor is asked as
    before: this one may have given another system's name to its own machine.
    """
    avoided = state.origin.avoided
    before = avoided.pop((via, machine.mark), None)
    pause = pause_after(None if before is None else before.pause, is_final=is_final, now=now)
    is_final = is_final or (before is not None and before.is_final and pause is before.pause)
    avoided[via, machine.mark] = Avoided(pause=pause, is_final=is_final)
    if len(avoided) > AVOIDED_LIMIT:
        del avoided[next(iter(avoided))]
    watch_avoided(state, now)


def refuse(state: ModuleState, machine: Machine, /, *, via: SystemId, trust: Trust, now: Instant) -> None:
    """Request no places on a machine for origins with these roots for a while: its bytes do not pass here."""
    refused, key = state.ways.refused, (via, trust, machine.mark)
    refused[key] = pause_after(refused.pop(key, None), is_final=False, now=now)
    if len(refused) > AVOIDED_LIMIT:
        del refused[next(iter(refused))]


def refused_through(state: ModuleState, via: SystemId, /, *, trust: Trust, now: Instant) -> tuple[bytes, ...]:
    """Return the marks of the machines behind a neighbor that are not asked for an origin with these roots now."""
    return tuple(
        mark
        for (to, roots, mark), pause in state.ways.refused.items()
        if (to, roots) == (via, trust) and now < pause.until
    )


def ask_again(state: ModuleState, via: SystemId) -> None:
    """Stop avoiding the executors that did not answer through a neighbor, whose link is up again, or were refused."""
    for refused in [key for key in state.ways.refused if key[0] == via]:
        del state.ways.refused[refused]
    avoided = state.origin.avoided
    for key in [key for key, each in avoided.items() if key[0] == via and not each.is_final]:
        del avoided[key]


def trust_anew(state: ModuleState) -> None:
    """Forget which systems were not reached for lack of trust, since the roots are others now."""
    state.ways.refused.clear()
    state.ways.detours.clear()
    avoided = state.origin.avoided
    for key in [key for key, each in avoided.items() if each.is_final]:
        del avoided[key]


def is_avoided(state: ModuleState, machine: Machine, /, *, via: SystemId, now: Instant) -> bool:
    """Return whether places on a machine that come through a neighbor are not taken now."""
    avoided = state.origin.avoided.get((via, machine.mark))
    return avoided is not None and now < avoided.pause.until


def watch_avoided(state: ModuleState, now: Instant) -> None:
    """Set the timeout for the next end of a pause."""
    ends = [each.pause.until for each in state.origin.avoided.values() if now < each.pause.until]
    if ends:
        state.timers.set(TimerKind.AVOIDED, state.system, min(ends))


def avoiding(state: ModuleState, request: SchedRequest, /, *, to: SystemId, now: Instant) -> SchedRequest:
    """Return a request of this origin with the digests of the machines to avoid behind the neighbor that gets it.

    Those avoided long ago are forgotten.
    """
    avoided = state.origin.avoided
    for key in [key for key, each in avoided.items() if each.pause.is_forgotten(now)]:
        del avoided[key]
    marks = [mark for (via, mark), each in avoided.items() if via == to and now < each.pause.until]
    marks = [*dict.fromkeys((*marks, *full_machines(state, to)))][:AVOIDED_LIMIT]
    return replace(request, avoids=tuple(digest_of(mark, request.search) for mark in marks))
