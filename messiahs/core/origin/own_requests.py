"""The requests with which an origin searches for places for its own tasks (MESSIAHS 6.2 sched_request)."""

from messiahs.core.interface.limits import ASK_LIMIT
from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import MessageId, SearchId
from messiahs.core.origin.not_after import wanted_lease_ns
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape


def request_for(
    state: ModuleState, shape: Shape, /, *, number: MessageId, search: SearchId, tasks: int
) -> SchedRequest:
    """Return the request, from this module to itself, for places for `tasks` tasks of a shape."""
    tdv, requirement = shape.key
    return SchedRequest(
        id=number,
        search=search,
        origin=state.system,
        tdv=tdv,
        requirement=requirement,
        count=min(tasks, shape.promised or ASK_LIMIT, ASK_LIMIT),
        hops_left=state.policy.limits.hops,
        asks_left=state.policy.limits.asks,
        remaining_ns=state.policy.timeouts.request_ns,
        answers=shape.answers,
        trust=state.identity.trust,
        dialers=(state.identity.key,) if state.identity.key else (),
        near=shape.near,
        lease_ns=wanted_lease_ns(tdv, longest_ns=state.policy.timeouts.lease_ns),
    )
