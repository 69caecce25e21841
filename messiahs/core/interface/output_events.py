"""What has become of the outputs of ended attempts on their way to the origin (MESSIAHS 5.3.2)."""

from dataclasses import dataclass

from messiahs.core.model.ids import AttemptId
from messiahs.core.model.routes import Leg


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsHome:
    """All outputs of an ended attempt are stored at the origin."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsFailed:
    """The outputs of an ended attempt could not be fetched now on a leg, that of the `FetchOutputs`.

    `is_gone`: they no longer exist. `is_full`: there is no space for them at the origin. `is_refused`: a module on the
    way lets no more bytes pass for now; the text names it.
    """

    attempt: AttemptId
    leg: Leg
    text: str
    is_gone: bool
    is_full: bool = False
    is_refused: bool = False
