"""Why tasks of a claim were not delivered (MESSIAHS 5.3.3): the task channel's answer, and the core's events."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from messiahs.core.model.ids import ClaimId


class TransferFailure(StrEnum):
    """Why tasks of a claim were not delivered: the stream itself failed (the first two), or an answer came on it."""

    BROKEN = "broken"
    """The stream broke, or could not be opened: they may or may not have arrived."""
    UNTRUSTED = "untrusted"
    """No stream can be opened, because one end does not trust the certificate of the other."""
    REFUSED = "refused"
    """The executor, or a hop, did not accept them."""
    DENIED = "denied"
    """The receiver does not accept tasks of this claim from the sender."""
    BEYOND = "beyond"
    """The receiver is a hop, and its own leg failed: they may or may not have arrived."""


FINAL: Final = (TransferFailure.UNTRUSTED, TransferFailure.DENIED)
"""Failures that another try on the same leg would repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferAnswer:
    """The answer to a dropped transfer; an accepted one has none. From earlier releases `claim` is None: all claims.

    `kind` is `REFUSED`, `DENIED` or `BEYOND`.
    """

    claim: ClaimId | None
    problem: str
    kind: TransferFailure = TransferFailure.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class StraightFailed:
    """Bytes of a claim could not be sent or read on its straight leg: it is not trusted, or not answered."""

    claim: ClaimId
    text: str
