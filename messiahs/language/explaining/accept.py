"""Explain `accept`: the answer to a request for a place."""

from collections.abc import Iterator

from messiahs.core.interface.policies import AcceptQuery, Refused
from messiahs.language.explaining.situation import Situation, block_of
from messiahs.language.runtime.accept_explanation import explain_accept
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.rule_explanation import ExplainedBlock


def accept_in(policy: CompiledPolicy, situation: Situation, /) -> Iterator[ExplainedBlock]:
    """Yield every block if no sender is stated; a stated one gets an answer instead."""
    if not situation.asks:
        yield from (explain_accept(block, situation.query) for block in policy.acceptance.blocks)


def explain_answer(policy: CompiledPolicy, query: AcceptQuery, /) -> ExplainedBlock:
    """Evaluate the block for the sender, or explain the answer without a block."""
    block = policy.acceptance.block_for(query.asker)
    if block is not None:
        return explain_accept(block, query)
    answer = policy.acceptance.judge(query)
    if isinstance(answer, Refused):
        return block_of(answer.rule, f"refused: {answer.text}", ())
    return block_of("accept from users", "accepted: no block is about users", ())
