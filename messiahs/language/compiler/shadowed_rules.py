"""Alternatives and rules that never decide, because others imply them (MESSIAHS 5.4).

A condition follows from others only if it is also defined wherever they are: it needs no attribute that they do not
need. Every warning here is proved; whatever is too complex to prove gets no warning.
"""

from collections.abc import Callable, Iterable, Sequence

from lark import Token

from messiahs.core.model.attributes import Kind
from messiahs.language.compiler.provability import Certainty
from messiahs.language.predicate.syntax import Chain, Connective, Expression, Not
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.syntax.problems import Code, Notebook


def warn_of_superfluous(
    conditions: Sequence[Condition],
    certainty: Certainty,
    notebook: Notebook,
    /,
    *,
    is_candidate: Callable[[Condition], bool] = lambda _: True,
) -> None:
    """Warn of alternatives that the others imply; of two equal ones, of the later one."""
    kept = list(conditions)
    for condition in reversed(conditions):
        others = [each for each in kept if each is not condition]
        if is_candidate(condition) and follows((condition,), others, certainty):
            kept = others
            note_superfluous(condition, notebook)


def note_superfluous(condition: Condition, notebook: Notebook) -> None:
    """Warn of an alternative that others imply."""
    message = "this adds nothing: another alternative is true whenever it is"
    notebook.warning(place_of(condition), Code.UNREACHABLE, message, hint="remove it, or correct it")


def follows(premises: Sequence[Condition], conclusions: Iterable[Condition], certainty: Certainty, /) -> bool:
    """Return whether one of the conclusions certainly holds wherever all premises do."""
    needed = {need for premise in premises for need in _needs_of(premise)}
    defined = [conclusion for conclusion in conclusions if _needs_of(conclusion) <= needed]
    return bool(defined) and not can_hold(premises, defined, certainty)


def can_hold(true: Sequence[Condition], false: Sequence[Condition], certainty: Certainty, /) -> bool:
    """Return whether some conditions may hold while others are false; also True if the effort is used up."""
    if certainty.effort.left <= 0:
        return True
    terms: list[Expression] = [each.expression for each in true]
    terms += [Not(each.expression) for each in false]
    operands = {operand.key: operand for each in (*true, *false) for operand in each.operands}
    return not certainty.is_never_true(Chain(Connective.AND, tuple(terms)), tuple(operands.values()))


def _needs_of(condition: Condition) -> set[tuple[str, str, Kind] | str]:
    """Return what must have a value: attributes, and amounts, which may have none although their attributes do."""
    amounts = {each.key for each in condition.operands if isinstance(each, Amount)}
    return {(each.scope, each.name, each.kind) for each in condition.readings if each.is_needed} | amounts


def place_of(condition: Condition) -> Token:
    """Return the words of a predicate as one token."""
    text = condition.predicate
    return Token("SPAN", text, start_pos=condition.start, end_pos=condition.start + len(text))
