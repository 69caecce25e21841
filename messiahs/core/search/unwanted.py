"""Why the own machine takes no task of a request now, although the policy would accept it (MESSIAHS 2: autonomy)."""

from dataclasses import replace

from messiahs.core.executor.owner_rules import barred_until
from messiahs.core.interface.messages import DenyCode, Reason, SchedRequest
from messiahs.core.interface.policies import Accepted, Asker, Refused
from messiahs.core.model.instants import Instant, instant_text
from messiahs.core.search.routing import why_drained
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.withheld import why_withheld


def why_unwanted(state: ModuleState, request: SchedRequest, asker: Asker, /, now: Instant) -> str:
    """Return why the own machine accepts no such task now, although the policy would; empty if it does."""
    if state.membership.drain is not None and state.updates.measured is not None:
        return why_drained(state.membership.drain)
    if state.updates.measured is not None and (text := why_withheld(state, asker.system)):
        return text
    until = barred_until(state, request.origin, request.tdv, now)
    if until is not None:
        return f"a task like this was revoked here, and none gets a place here until {instant_text(until)}"
    return "this request relocates a task that already runs here" if request.answers in state.executor.offers else ""


def with_unwanted(state: ModuleState, reason: Reason, why_unwanted: str, verdict: Accepted | Refused, /) -> Reason:
    """Return a reason with why the machine accepts no such task now, which hides no reason that outlasts it."""
    if state.membership.drain is not None:
        return replace(reason, code=DenyCode.DRAINING, text=why_unwanted)
    if isinstance(verdict, Refused) or why_unwanted in reason.text:
        return reason
    return replace(reason, text="; ".join(filter(None, (reason.text, why_unwanted))))
