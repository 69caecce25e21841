"""Evaluate every block of a policy over given facts (`policy explain`)."""

from collections.abc import Callable, Iterable
from functools import cache
from pkgutil import resolve_name

from messiahs.core.interface.policies import AcceptQuery
from messiahs.core.model.descriptions import Description
from messiahs.language.explaining.accept import explain_answer
from messiahs.language.explaining.situation import Situation
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.rule_explanation import ExplainedBlock
from messiahs.language.syntax.blocks import BLOCKS

Explainer = Callable[[CompiledPolicy, Situation], Iterable[ExplainedBlock]]
"""Evaluates the rules of one block of the language, as far as they apply to a situation."""


def explain_policy(
    policy: CompiledPolicy, query: AcceptQuery, /, *, asks: bool, present: Description
) -> tuple[ExplainedBlock, ...]:
    """Evaluate every block that has rules to evaluate, in the order of the file.

    With `asks`, only the `accept` block for the sender of the query counts, and `join` is evaluated for it as the first
    member of its role. `present` holds attributes of a task on this machine, such as its run time; if there is one, the
    rules about running tasks are evaluated too.
    """
    situation = Situation(query=query, asks=asks, present=present)
    explained = [block for explain in _explainers() for block in explain(policy, situation) if block.rules]
    # A sender gets an answer even if no rule is about it.
    explained += [explain_answer(policy, query)] if asks else []
    return tuple(sorted(explained, key=lambda block: block.start))


@cache
def _explainers() -> tuple[Explainer, ...]:
    return tuple(resolve_name(f"{__package__}.{block.explainer}") for block in BLOCKS.values() if block.explainer)
