"""The result of an expectation of a trial."""

from dataclasses import dataclass

from messiahs.language.runtime.rule_explanation import ExplainedBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the expectation is met, the actual result, and the rules behind it."""

    is_met: bool
    came: str
    blocks: tuple[ExplainedBlock, ...] = ()
