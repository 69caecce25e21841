"""Explanation of a rule: its condition with the values found, over facts or over the classes of many machines."""

from dataclasses import dataclass

from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.class_explanation import ClassPart, explain_classes, machines_in
from messiahs.language.runtime.condition_explanation import Explanation, explain, why_false
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule as written, its offset in the file (in characters from 0), and its result.

    A limit is true while it is not reached; `note` is an explanation without comparisons. `classes` are evaluated
    instead of the own machine if there is none.
    """

    text: str
    start: int
    is_true: bool
    explanation: Explanation | None = None
    note: str = ""
    classes: ClassPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedBlock:
    """A block of a policy, its result, and its rules in the order of evaluation."""

    head: str
    start: int
    verdict: str
    rules: tuple[ExplainedRule, ...]


def explain_rule(condition: Condition, text: str, facts: Facts, /) -> ExplainedRule:
    """Evaluate the condition of a rule."""
    explanation = explain(condition, facts)
    return ExplainedRule(text=text, start=condition.start, is_true=explanation.holds, explanation=explanation)


def explain_below(
    condition: Condition, text: str, facts: Facts, machines: IndexedVector, /, *, scope: str = HERE
) -> ExplainedRule:
    """Evaluate the condition of a rule over many machines, one of which suffices."""
    classes = explain_classes(condition, facts, scope, machines)
    is_true = classes.judged[1] != 0
    note = f"{machines_in(classes.judged, machines)} of {machines.vector.machines} machines could meet it"
    return ExplainedRule(text=text, start=condition.start, is_true=is_true, note=note, classes=classes)


def why_not_true(rule: ExplainedRule) -> str:
    """Return on one line why a rule is not true, with the values found."""
    return rule.note or (why_false(rule.explanation) if rule.explanation is not None else "")
