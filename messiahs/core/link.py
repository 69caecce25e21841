"""Connections with neighbors: hello, and what both ends repeat after one was lost (MESSIAHS 5.3.2, 6.2).

Control channels forget what was in flight when they break. So after each connect both ends bring up the claims that go
over the link: results, bindings and kills are repeated from rows until they are answered.
"""

from messiahs.core import epochs
from messiahs.core.epochs import WIRE_VERSIONS
from messiahs.core.executor.claims import on_path_lost, renew
from messiahs.core.executor.reservations import forget_starved
from messiahs.core.interface.actions import Action, Decision, DropLink, Report, ReportCode, SendControl
from messiahs.core.interface.messages import Hello, TaskStatusQuery
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.search import routing
from messiahs.core.state.module import ModuleState
from messiahs.core.update import advertising, status_vector


def on_link_up(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Say hello on a new connection; nothing else is said before the neighbor's hello has come."""
    if neighbor not in state.neighbors:
        return (DropLink(neighbor=neighbor, text=f"{neighbor} is no neighbor of {state.system}"),)
    dropped = on_link_down(state, neighbor, now) if neighbor in state.updates.links else ()
    state.updates.links[neighbor] = False
    return (*dropped, epochs.hello_to(state, neighbor))


def on_link_down(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Forget a neighbor's view, and what was asked over the connection."""
    if state.updates.links.pop(neighbor, None) is None:
        return ()
    status_vector.forget_views(state, neighbor, now)
    on_path_lost(state, neighbor, now)
    forget_starved(state, neighbor, now)
    return routing.on_neighbor_lost(state, neighbor, now)


def on_hello(state: ModuleState, hello: Hello, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Open a link to a neighbor that speaks a wire version of ours: vectors, then everything unanswered."""
    if hello.system != sender:
        return _refuse(sender, ReportCode.NOT_ITS_NAME, f"{sender} says that it is {hello.system}")
    if not any(version in WIRE_VERSIONS for version in hello.wire_versions):
        spoken = ", ".join(str(version) for version in hello.wire_versions)
        text = f"{sender} (release {hello.release}) speaks wire versions {spoken}, this module only {WIRE_VERSIONS[0]}"
        return _refuse(sender, ReportCode.NO_COMMON_VERSION, text)
    noted = epochs.on_hello(state, hello, now)
    if state.updates.links.get(sender):
        return noted
    state.updates.links[sender] = True
    status_vector.expect_vectors(state, sender, now)
    opened = Decision(what="link_up", task=sender, text=f"release {hello.release}")
    return (opened, *noted, *advertising.advertise_to(state, sender, now), *_repeat(state, sender, now))


def _repeat(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Bring up every claim that goes over a link; the executor's renewal in answer makes the origin repeat its part."""
    actions: list[Action] = []
    for granted in state.executor.claims.values():
        if granted.row.via == neighbor:
            actions.extend(renew(state, granted, now))
    actions.extend(_ask_all(neighbor, held.row.id) for held in state.origin.claims.values() if held.row.via == neighbor)
    actions.extend(
        _ask_all(passed.toward_executor, passed.id)
        for passed in state.hop.passed.values()
        if neighbor in (passed.toward_origin, passed.toward_executor)
        and state.updates.links.get(passed.toward_executor)
    )
    return tuple(actions)


def _ask_all(toward_executor: SystemId, claim: ClaimId) -> SendControl:
    return SendControl(to=toward_executor, message=TaskStatusQuery(claim=claim, attempts=()))


def _refuse(sender: SystemId, code: ReportCode, text: str) -> tuple[Action, ...]:
    return (Report(neighbor=sender, code=code, text=text), DropLink(neighbor=sender, text=text))
