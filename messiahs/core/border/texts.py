"""The texts that cross a border, in place of those of the systems behind it (MESSIAHS 4).

Those are written by anybody, and may name anything. What happened is known from codes, causes and kinds. Only the texts
that rules provide for others pass unchanged.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import AttemptStatus, DenyCode, Reason, Substate
from messiahs.core.interface.transfer_answers import TransferFailure

GONE: Final = "nothing of it is left behind this border"
"""For outputs, and for attempts that take standard input."""
_NOT_REACHED: Final = "the next system behind this border was not reached"
_FAILURES: Final = {
    TransferFailure.REFUSED: "it was refused behind this border",
    TransferFailure.DENIED: "the ticket is not right for this claim",
    TransferFailure.BEYOND: _NOT_REACHED,
    TransferFailure.BROKEN: _NOT_REACHED,
    TransferFailure.UNTRUSTED: _NOT_REACHED,
}
"""For tasks and other bytes of a claim."""
_TOLD_BY_OWNERS: Final = (Substate.SUSPENDED, Substate.VACATING)
_KNOWN_CAUSES: Final = frozenset(Cause)


def text_of_failure(kind: TransferFailure) -> str:
    """Return why tasks or other bytes of a claim did not pass."""
    return _FAILURES[kind]


def text_of_reason(reason: Reason) -> str:
    """Return the text of a rule that refuses; empty for all other reasons."""
    return reason.text if reason.code is DenyCode.REFUSED_BY_POLICY else ""


def told_status(status: AttemptStatus) -> AttemptStatus:
    """Return the state of an attempt with a known cause, and with the text of the owner's rule that holds it up."""
    # The text of an attempt that moves may name the requester of an offer.
    is_of_owner = status.substate in _TOLD_BY_OWNERS and status.cause != Cause.MOVED
    cause = status.cause if status.cause in _KNOWN_CAUSES else ""
    return replace(status, text=status.text if is_of_owner else "", cause=cause)
