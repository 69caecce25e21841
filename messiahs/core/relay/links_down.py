"""Why links are down, for the users whose tasks they concern: the own links, and those that neighbors report."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from messiahs.core.interface.actions import Report, ReportCode
from messiahs.core.interface.messages import DenyCode, Reason, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import View

_NEVER_LINKED: Final = (
    "no connection since this module started: is it running, and are both certificates signed by this site's root?"
)
_NEVER_LINKED_APART: Final = (
    "no connection since this module started: is it running, and do both sites record each other's root.pem?"
)
"""What is known of a neighbor that dials, and that fails to: a handshake that ends early names nobody."""


def why_unlinked(state: ModuleState) -> Mapping[SystemId, str]:
    """Return the neighbors without a link, and why."""
    known = state.updates.unlinked | {each: row.why for each, row in state.shut_off.items()}
    never, apart, links = (_NEVER_LINKED, _NEVER_LINKED_APART), state.identity.apart, state.updates.links
    return {each: known.get(each, never[each in apart]) for each in state.neighbors if not links.get(each)}


def without_link(state: ModuleState, sender: SystemId, what: str, /) -> Report:
    """Return the report of a message that is dropped because there is no greeted link with its sender.

    From a neighbor it is no violation: messages wait for their turn, and the link over which they came may end, as by a
    restart of the neighbor, before they are handled. Vectors have a stream of their own and may overtake the hello.
    """
    if sender not in state.neighbors:
        return Report(neighbor=sender, code=ReportCode.NOT_A_NEIGHBOR, text=what)
    why = "its hello has not come yet" if sender in state.updates.links else "the link over which it came has ended"
    return Report(neighbor=sender, code=ReportCode.NO_LINK, text=f"{what} is dropped: {why}")


def why_not_linked(state: ModuleState, *, via: Collection[SystemId]) -> tuple[Reason, ...]:
    """Return the links with some neighbors that are down, and those that these neighbors report."""

    def reason(module: SystemId, text: str) -> Reason:
        return Reason(module=module, code=DenyCode.UNREACHABLE, text=text)

    here = (reason(each, text) for each, text in why_unlinked(state).items() if each in via)
    beyond = (
        reason(each.module, f"{each.neighbor} is not linked{f': {each.text}' if each.text else ''}")
        for each in _heard(state, via=via)
    )
    return (*here, *beyond)


def reported(
    state: ModuleState, views: Mapping[tuple[SystemId, VectorKind], View], *, is_below: bool
) -> Iterator[tuple[SystemId, MissingLink]]:
    """Yield the missing links that vectors report, each with the neighbor that sent it."""
    for (system, kind), view in views.items():
        if (kind is VectorKind.FOR_PARENTS) is is_below:
            # What this module reported itself may return, and be outdated.
            yield from ((system, each) for each in view.message.missing if each.module != state.system)


def lost_parents(state: ModuleState) -> dict[SystemId, str]:
    """Return the parents of the topology file with which the link has ended, but not by people of this site, and why.

    They are added again when the file is applied.
    """
    ended = (row for row in state.membership.removed.values() if row.is_ended and not row.is_by_people)
    return {row.system: row.text for row in ended if state.membership.is_parent_of_file(row.system)}


def _heard(state: ModuleState, *, via: Iterable[SystemId]) -> tuple[MissingLink, ...]:
    """Return the links of other systems that some neighbors report as missing, each once."""
    asked = frozenset(via)
    views = {key: view for key, view in state.updates.views.items() if key[0] in asked}
    heard = (each for is_below in (False, True) for _, each in reported(state, views, is_below=is_below))
    return tuple({(each.module, each.neighbor): each for each in heard}.values())
