"""What came of an expectation of a trial."""

from dataclasses import dataclass

from messiahs.language.runtime.accept_explanation import ExplainedBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether something was as it was expected, what came instead, and why."""

    is_met: bool
    came: str
    blocks: tuple[ExplainedBlock, ...] = ()
