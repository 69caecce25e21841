"""What came of an expectation of a trial."""

from collections.abc import Iterable
from dataclasses import dataclass

from messiahs.language.explaining_accept import ExplainedBlock, ExplainedRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether something was as it was expected, what came instead, and why."""

    is_met: bool
    came: str
    blocks: tuple[ExplainedBlock, ...] = ()


def block_of(head: str, verdict: str, rules: Iterable[ExplainedRule], /) -> ExplainedBlock:
    """Give an explanation of rules, wherever they stand in the file."""
    judged = tuple(rules)
    start = min((rule.start for rule in judged), default=0)
    return ExplainedBlock(head=head, start=start, verdict=verdict, rules=judged)
