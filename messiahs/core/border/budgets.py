"""The budgets of searches that cross a border: they begin anew, and so count nothing that is hidden (MESSIAHS 6.2).

What is left of them on the way would tell how deep the asker is, and how many systems were asked. Searches end all the
same: each module takes a search once in each direction, and each one leaves less time to the next.
"""

from dataclasses import replace
from typing import Final, TypeVar

from messiahs.core.interface.limits import ASKS, HOPS
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest, TaskAccept, TaskDeny, TaskRequest

_USED: Final = 16
"""As many hops and asks count as used up on the hidden side, whatever happened there."""
HOPS_BEYOND: Final = HOPS - _USED
ASKS_BEYOND: Final = ASKS - _USED

_Request = TypeVar("_Request", bound=SchedRequest | TaskRequest)
_Answer = TypeVar("_Answer", bound=SchedAccept | SchedDeny | TaskAccept | TaskDeny)


def renewed(request: _Request, /) -> _Request:
    """Return a request with the budgets of every search that crosses; what is used up stays so."""
    return replace(
        request,
        hops_left=HOPS_BEYOND if request.hops_left else 0,
        asks_left=ASKS_BEYOND if request.asks_left else 0,
    )


def unaccounted(answer: _Answer, /) -> _Answer:
    """Return an answer that does not tell how many systems were asked; its asker has counted this one."""
    return replace(answer, asks_left=ASKS_BEYOND)
