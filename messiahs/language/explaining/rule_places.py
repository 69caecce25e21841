"""Where the rules stand that have refused tasks."""

from collections.abc import Iterator

from messiahs.language.runtime.compiled_policy import CompiledPolicy


def rule_lines(policy: CompiledPolicy, rule: str, /) -> tuple[int, ...]:
    """Return the lines of a policy file, from 1, on which a rule of `accept` stands; several if it is repeated.

    `rule` is that of a refusal: the occasions of a block, none of which is true, are one. Empty if it is not in the
    file, as that of senders without a block.
    """
    if policy.source is None:
        return ()
    starts = sorted({start for text, start in _rules_in(policy) if text == rule})
    return tuple(dict.fromkeys(policy.source.text.count("\n", 0, start) + 1 for start in starts))


def _rules_in(policy: CompiledPolicy) -> Iterator[tuple[str, int]]:
    for block in policy.acceptance.blocks:
        yield from ((each.rule, each.condition.start) for each in block.requirements)
        occasions = "; ".join(each.rule for each in block.occasions)
        yield from ((occasions, each.condition.start) for each in block.occasions)
        yield from ((limit.rule, limit.start) for limit in block.limits)
        yield from ((limit.rule, limit.start) for limit in block.usage_limits)
