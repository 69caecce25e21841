"""Warnings about the rules of `running`: those that contradict each other, protect nobody, or never act."""

from collections.abc import Sequence
from typing import Final

from messiahs.core.interface.policies import Act
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.shadowed_rules import can_hold, follows
from messiahs.language.predicate.syntax import Chain, Connective, Expression, Not
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, TASK, reads
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Statement

_MASKING: Final = {
    Act.KILL: {Act.KILL, Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.VACATE: {Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.MOVE: {Act.MOVE},
    Act.SUSPEND: {Act.SUSPEND, Act.RESUME},
    Act.RESUME: {Act.RESUME},
}
"""For each act that is due, the acts that it prevents; a task that searches for a place may be suspended meanwhile."""


def check_running(draft: Draft, certainty: Certainty) -> None:
    """Add every warning about these rules."""
    notebook = draft.reader.notebook
    for rule, statement in draft.running:
        _warn_of_lost_sensor(rule, statement, certainty, notebook=notebook)
    _warn_of_opposites(draft.running, certainty, notebook)
    _warn_of_never_resumed(draft.running, notebook)
    _warn_of_rules(draft.running, certainty, notebook)


def _warn_of_lost_sensor(rule: CompiledRule, statement: Statement, certainty: Certainty, *, notebook: Notebook) -> None:
    """Warn of a rule that protects the owner and does not act where a sensor is missing or broken."""
    if rule.is_unless or rule.act is Act.RESUME:
        return
    for reading in rule.condition.readings:
        attribute = certainty.attribute_of(reading)
        if reading.scope == HERE and reading.is_needed and attribute is not None and attribute.is_optional:
            message = f"without {reading} the tasks keep running"
            hint = f"write {rule.act} unless, and the opposite: it also acts where the value is missing"
            notebook.warning(statement.words[1], Code.LOST_SENSOR, message, hint=hint)


def _warn_of_opposites(
    rules: Sequence[tuple[CompiledRule, Statement]], certainty: Certainty, notebook: Notebook, /
) -> None:
    """Warn of a `resume` that can be true together with a `suspend`."""
    suspending = [rule for rule, _ in rules if rule.act is Act.SUSPEND]
    for resuming, statement in rules:
        if resuming.act is not Act.RESUME:
            continue
        for rule in suspending:
            parts = [*_parts_of(rule), *_parts_of(resuming)]
            readings = {each.key: each for condition, _ in parts for each in condition.readings}
            both = Chain(Connective.AND, tuple(expression for _, expression in parts))
            if not certainty.is_never_true(both, tuple(readings.values())):
                message = f"this can be true together with `{rule.rule}`, which wins"
                notebook.warning(statement.words[0], Code.TOGETHER, message, hint="let them exclude each other")
                break


def _warn_of_never_resumed(rules: Sequence[tuple[CompiledRule, Statement]], notebook: Notebook, /) -> None:
    """Warn of the first rule that suspends tasks if no rule resumes them or ends long-suspended ones."""
    suspending = [statement for rule, statement in rules if Act.SUSPEND in {rule.act, rule.then}]
    has_end = any(rule.act is Act.RESUME or reads(rule.condition, TASK, "suspended") for rule, _ in rules)
    if suspending and not has_end:
        hint = "write when they resume, as in: resume when $here.load < 50%;"
        message = "no rule resumes the tasks that this suspends"
        notebook.warning(suspending[0].words[0], Code.NEVER_RESUMED, message, hint=hint)


def _parts_of(rule: CompiledRule) -> list[tuple[Condition, Expression]]:
    own = rule.condition.expression
    heads = [] if rule.head is None else [(rule.head, rule.head.expression)]
    return [*heads, (rule.condition, Not(own) if rule.is_unless else own)]


def _warn_of_rules(
    rules: Sequence[tuple[CompiledRule, Statement]], certainty: Certainty, notebook: Notebook, /
) -> None:
    """Warn of rules that never act."""
    for place, (rule, statement) in enumerate(rules):
        for other_place, (other, _) in enumerate(rules):
            if _outdoes(other, rule, is_earlier=other_place < place) and _is_due_with(rule, other, certainty):
                message = f"this never acts: `{other.rule}` is due whenever it is, and wins"
                notebook.warning(statement.words[0], Code.UNREACHABLE, message, hint="remove it, or correct it")
                break


def _outdoes(one: CompiledRule, other: CompiledRule, *, is_earlier: bool) -> bool:
    """Return whether a rule keeps another from acting if it is due whenever the other is."""
    if other.act not in _MASKING[one.act] or one.for_ns > other.for_ns:
        return False
    if one.act is not other.act:
        return True
    # A task in its grace period may still be killed at once.
    return is_earlier and (one.act is not Act.KILL or not one.grace_ns or bool(other.grace_ns))


def _is_due_with(rule: CompiledRule, other: CompiledRule, certainty: Certainty, /) -> bool:
    """Return whether another rule is certainly due whenever a rule is, also where attributes are undefined."""
    heads = () if rule.head is None else (rule.head,)
    premises = heads if rule.is_unless else (*heads, rule.condition)
    if other.head is not None and not follows(premises, [other.head], certainty):
        return False
    match rule.is_unless, other.is_unless:
        case False, False:
            return follows(premises, [other.condition], certainty)
        case False, True:
            return not can_hold((*premises, other.condition), (), certainty)
        case True, True:
            return follows((*premises, other.condition), [rule.condition], certainty)
        case _:
            return False
