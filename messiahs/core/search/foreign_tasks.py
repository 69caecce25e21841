"""Tasks of other sites, and why a machine that contains no tasks takes none of them.

Tasks outside of a sandbox have all rights of the account that runs them, which other tasks share. Those of the own
site come from people whom one administration answers for; nobody here answers for others. What is refused is the
machine, not the way: a module passes requests of other sites on to systems that can contain their tasks.
"""

from dataclasses import replace

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import SystemId
from messiahs.core.state.module import ModuleState


def marked(state: ModuleState, request: SchedRequest, *, sender: SystemId) -> SchedRequest:
    """Return a request that says whether its origin belongs to another site.

    That is so if it came over a link with another site, here or earlier on its way. Modules of release 0.1.0 do not
    note that, but pass on which roots vouch for the origin: none of this site, or none at all.
    """
    if request.is_foreign or sender == state.system:
        return request
    own = state.identity.roots_of_site
    is_vouched_for = not own or not set(own).isdisjoint(request.trust.vouchers)
    return replace(request, is_foreign=sender in state.identity.apart or not is_vouched_for)
