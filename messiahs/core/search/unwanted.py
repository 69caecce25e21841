"""Why the own machine takes no task of a request now, although the policy would accept it (MESSIAHS 2: autonomy)."""

from dataclasses import replace
from typing import Final, NamedTuple

from messiahs.core.executor.kept_results import is_closed
from messiahs.core.executor.owner_rules import barred_until
from messiahs.core.interface.messages import DenyCode, Reason, SchedRequest
from messiahs.core.interface.policies import Asker
from messiahs.core.interface.request_counts import Gate
from messiahs.core.model.instants import Instant, instant_text
from messiahs.core.relay.reachability import why_unreachable
from messiahs.core.search.routing import why_drained
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.maintenance import why_too_late
from messiahs.core.task_filter.withheld import why_withheld


class Bar(NamedTuple):
    """What keeps the own machine from tasks that the policy accepts, with a text for those who ask."""

    gate: Gate
    text: str


NOT_ALLOTTED: Final = Bar(Gate.ALLOTTED, "")


def why_barred(state: ModuleState, request: SchedRequest, asker: Asker, /, now: Instant) -> Bar | None:
    """Return why the own machine accepts no such task now, although the policy would; None if it does."""
    if state.membership.drain is not None and state.updates.measured is not None:
        return Bar(Gate.DRAINING, why_drained(state.membership.drain))
    if state.updates.measured is not None and (text := why_too_late(state, request.tdv, now)):
        return Bar(Gate.MAINTENANCE, text)
    if state.updates.measured is not None and (text := why_withheld(state, asker.system)):
        return Bar(Gate.NOT_LENT, text)
    if is_closed(state, asker.system):
        return Bar(Gate.NOT_TAKEN, "results of earlier tasks have not been taken")
    until = barred_until(state, request.origin, request.tdv, now)
    if until is not None:
        text = f"a task like this was revoked here, and none gets a place here until {instant_text(until)}"
        return Bar(Gate.NOT_AGAIN, text)
    if request.answers in state.executor.offers:
        return Bar(Gate.NOT_AGAIN, "this request relocates a task that already runs here")
    text = why_unreachable(state, request)
    return Bar(Gate.UNREACHED, text) if text else None


def with_bar(reason: Reason, bar: Bar | None, /) -> Reason:
    """Return a reason with why the machine accepts no such task now, which hides no reason that outlasts it."""
    if bar is None:
        return reason
    if bar.gate is Gate.UNREACHED:
        is_nearest = reason.code is DenyCode.NO_CAPACITY
        return replace(reason, code=DenyCode.UNREACHABLE, text=bar.text) if is_nearest else reason
    if bar.gate is Gate.MAINTENANCE and reason.code in (DenyCode.NO_CLASS, DenyCode.REQUIREMENT_UNMET):
        return reason
    if bar.gate in (Gate.DRAINING, Gate.MAINTENANCE):
        return replace(reason, code=DenyCode.DRAINING, text=bar.text)
    if bar.text in reason.text:
        return reason
    return replace(reason, text="; ".join(filter(None, (reason.text, bar.text))))
