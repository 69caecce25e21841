"""Connections with neighbors: hello, and the messages that both ends repeat after a loss (MESSIAHS 5.3.2, 6.2).

A control channel that breaks loses its messages in transit. So after each connect both ends continue with the claims
that use the link: results, bindings and kills are repeated from rows until they are answered.
"""

from typing import Final

from messiahs.core import epochs
from messiahs.core.epochs import WIRE_VERSIONS
from messiahs.core.executor.claims import on_path_lost
from messiahs.core.executor.reports import renew
from messiahs.core.executor.reservations import forget_starved
from messiahs.core.interface.actions import Action, Decision, DropLink, Report, ReportCode, SendControl, ShutOff
from messiahs.core.interface.events import LinkRefused
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import TaskStatusQuery
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger import reports as ledger_reports
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.texts import printable
from messiahs.core.new_system import on_new_system
from messiahs.core.origin import delivery
from messiahs.core.search import routing
from messiahs.core.state.changes import mark_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.update import advertising, status_vector
from messiahs.core.update.counting import note_heard
from messiahs.core.update.link_costs import note_connection_ended

_TEXT_LENGTH: Final = 512
_RENEWED_AT_ONCE: Final = 16
"""Granted claims that are renewed in the event that opens a link; each further one has an event of its own."""


def on_link_up(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Send hello on a new connection; all other messages wait for the neighbor's hello."""
    if neighbor in state.shut_off:
        return (ShutOff(neighbor=neighbor),)
    if neighbor not in state.neighbors:
        return (DropLink(neighbor=neighbor, text=f"{neighbor} is no neighbor of {state.system}"),)
    dropped = on_link_down(state, neighbor, now) if neighbor in state.updates.links else ()
    state.updates.links[neighbor] = False
    return (*dropped, epochs.hello_to(state, neighbor))


def on_link_refused(state: ModuleState, event: LinkRefused, now: Instant) -> tuple[Action, ...]:
    """Record why there is no link with a neighbor, for users whose tasks wait, here and elsewhere."""
    is_expected = event.neighbor in state.neighbors and event.neighbor not in state.shut_off
    if is_expected and event.neighbor not in state.updates.links:
        was_known = event.neighbor in state.updates.unlinked
        _note_unlinked(state, event.neighbor, event.text)
        # An assigned sibling was reported before it was dialed.
        if not (was_known or state.membership.is_assigned(event.neighbor)):
            mark_view_changed(state, now)
    return ()


def on_link_down(state: ModuleState, neighbor: SystemId, now: Instant, *, text: str = "") -> tuple[Action, ...]:
    """Forget a neighbor's view, and the requests sent over the connection."""
    if neighbor not in state.updates.links:
        return ()
    return close_link(state, neighbor, now, text=text or "the connection ended")


def close_link(state: ModuleState, neighbor: SystemId, now: Instant, *, text: str) -> tuple[Action, ...]:
    """Do as `on_link_down`, whether or not there is a connection, and report the reason to other neighbors."""
    state.updates.links.pop(neighbor, None)
    state.membership.released.pop(neighbor, None)
    _note_unlinked(state, neighbor, text)
    note_connection_ended(state, neighbor)
    status_vector.forget_views(state, neighbor, now)
    status_vector.expect_parents(state, now)
    on_path_lost(state, neighbor, now)
    forget_starved(state, neighbor, now)
    return routing.on_neighbor_lost(state, neighbor, now)


def on_hello(state: ModuleState, hello: Hello, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Open a link to a neighbor that supports a wire version of ours: send vectors, then everything unanswered."""
    if hello.system != sender:
        return _refuse(sender, ReportCode.NOT_ITS_NAME, f"{sender} claims to be {hello.system}")
    if not any(version in WIRE_VERSIONS for version in hello.wire_versions):
        versions = ", ".join(str(version) for version in hello.wire_versions)
        text = f"{sender} (release {hello.release}) supports wire versions {versions}, this module {WIRE_VERSIONS[0]}"
        return _refuse(sender, ReportCode.NO_COMMON_VERSION, text)
    closed = on_new_system(state, sender, now) if epochs.is_new_system(state, hello) else ()
    noted = (*closed, *epochs.on_hello(state, hello, now))
    if state.updates.links.get(sender):
        return noted
    state.updates.links[sender] = True
    if state.updates.unlinked.pop(sender, None) is not None:
        mark_view_changed(state, now)
    delivery.on_link_open(state, sender)
    status_vector.expect_vectors(state, sender, now)
    noted = (*noted, *note_heard(state, sender, now))
    opened = Decision(what="link_up", task=sender, text=f"release {hello.release}")
    return (opened, *noted, *advertising.advertise_to(state, sender, now), *_repeat(state, sender, now))


def _repeat(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Continue every claim that uses a link; the executor's renewal makes the origin repeat its messages."""
    actions: list[Action] = []
    theirs = [granted for granted in state.executor.claims.values() if granted.row.via == neighbor]
    for granted in theirs[:_RENEWED_AT_ONCE]:
        actions.extend(renew(state, granted, now))
    for granted in theirs[_RENEWED_AT_ONCE:]:
        state.timers.set(TimerKind.RENEWAL, granted.row.id, now)
    actions.extend(_ask_all(neighbor, held.row.id) for held in state.origin.claims.values() if held.row.via == neighbor)
    actions.extend(
        _ask_all(passed.toward_executor, passed.id)
        for passed in state.hop.passed.values()
        if neighbor in (passed.toward_origin, passed.toward_executor)
        and state.updates.links.get(passed.toward_executor)
    )
    return (*actions, *ledger_reports.on_link_open(state, neighbor))


def _ask_all(toward_executor: SystemId, claim: ClaimId) -> SendControl:
    return SendControl(to=toward_executor, message=TaskStatusQuery(claim=claim, attempts=()))


def _note_unlinked(state: ModuleState, neighbor: SystemId, text: str) -> None:
    # The text may come from the neighbor, or from somebody who poses as one.
    state.updates.unlinked[neighbor] = printable(text)[:_TEXT_LENGTH]


def _refuse(sender: SystemId, code: ReportCode, text: str) -> tuple[Action, ...]:
    return (Report(neighbor=sender, code=code, text=text), DropLink(neighbor=sender, text=text))
