"""The owner's dial: whether a machine is lent to others, whatever its policy says (MESSIAHS 2: autonomy)."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.model.instants import Instant


class Lent(StrEnum):
    """The positions of the dial, as policies read them (`$here.lent`)."""

    POLICY = "policy"
    """The owner has said nothing: the policy decides."""
    ON = "on"
    """The owner lends the machine; the policy decides as well, and may read this."""
    OFF = "off"
    """The owner lends it to nobody: tasks of other modules are refused, and those that run are suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LendRow:
    """The dial is `on` or off since `since`, by an account of the host; without this row the policy decides.

    At `until`, what is off is left to the policy again, and what is on is off. None: until it is turned again.
    """

    is_on: bool
    since: Instant
    until: Instant | None = None
    by: str = ""
