"""The texts that cross a border, in place of those of the systems behind it (MESSIAHS 4).

Those are written by anybody, and may name anything. What happened is known from codes, causes and kinds. Only the texts
that rules provide for others pass unchanged; of any other text, the reader learns which border withheld it.

| text | crosses |
|---|---|
| reason of a denial | of a policy's rule (`refused_by_policy`) |
| state of an attempt | of an owner's rule (`is_rule_text`), and that its disk was full; its known cause and isolation |
| task_revoke | of an owner's rule, which is any that answers no request for tasks |
| failure of tasks and bytes | none: each kind has a text of the border |
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import AttemptStatus, DenyCode, Reason, TaskRevoke
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.attributes import ISOLATIONS
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import DISK_WAS_FULL, WITHHELD
from messiahs.core.model.usage import Containment

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
_KNOWN_CAUSES: Final = frozenset(Cause)


def text_of_failure(kind: TransferFailure) -> str:
    """Return why tasks or other bytes of a claim did not pass."""
    return _FAILURES[kind]


def shown_reason(reason: Reason, *, border: SystemId) -> Reason:
    """Return a reason of this border with those of the systems behind it as codes of its own.

    The first one with the same code is part of its own reason, so it does not show how many systems are behind.
    """
    behind = dict.fromkeys(
        (each.code, each.text if each.code is DenyCode.REFUSED_BY_POLICY else _withheld(each.text, border))
        for each in _all_in(reason.hops)
    )
    own = next((text for code, text in behind if code is reason.code and text), "")
    reason = replace(reason, text=reason.text or own)
    others = (each for each in behind if each not in ((reason.code, ""), (reason.code, reason.text)))
    return replace(reason, hops=tuple(Reason(module=reason.module, code=code, text=text) for code, text in others))


def shown_status(status: AttemptStatus, *, border: SystemId) -> AttemptStatus:
    """Return the state of an attempt with a known cause and isolation, and with the text that crosses.

    Which counted things it has is a matter of the machine, and does not cross.
    """
    remark = DISK_WAS_FULL if status.text.endswith(DISK_WAS_FULL) else ""
    others = _withheld(status.text.removesuffix(remark).removesuffix("; "), border)
    text = status.text if status.is_rule_text else "; ".join(filter(None, (others, remark)))
    contained = status.containment
    if contained is not None:
        isolation = contained.isolation if contained.isolation in ISOLATIONS else ""
        contained = Containment(isolation=isolation, lacks=_withheld(contained.lacks, border))
    cause = status.cause if status.cause in _KNOWN_CAUSES else ""
    return replace(status, text=text, cause=cause, containment=contained, assigned=())


def shown_revoke(revoke: TaskRevoke, *, border: SystemId) -> TaskRevoke:
    """Return a revoke with the text of an owner's rule, but without one that names the requester of tasks."""
    return revoke if revoke.answers is None else replace(revoke, text=_withheld(revoke.text, border))


def _withheld(text: str, border: SystemId) -> str:
    return f"{WITHHELD} {border}" if text else ""


def _all_in(reasons: Iterable[Reason]) -> Iterator[Reason]:
    for reason in reasons:
        yield reason
        yield from _all_in(reason.hops)
