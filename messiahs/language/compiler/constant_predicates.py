"""Predicates of a policy file that decide nothing: never true, or true whenever they are evaluated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import Attribute
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.vocabulary import Vocabulary
from messiahs.language.predicate.satisfiability import Effort
from messiahs.language.predicate.syntax import Expression, uses_of
from messiahs.language.runtime.amounts import Operand, attributes_of
from messiahs.language.runtime.readings import Reading
from messiahs.language.syntax.parsing import first_token, last_token, trees_in
from messiahs.language.syntax.problems import Code, Notebook

EFFORT: Final = 50_000
"""Maximum effort for one file: a second or two, hundreds of times more than a realistic file needs."""

_WRAPPERS: Final = ("predicate", "group")
_PARTS: Final = (
    *_WRAPPERS,
    "disjunction",
    "exclusion",
    "conjunction",
    "negation",
    "comparison",
    "membership",
    "likeness",
    "in_group",
)
_ASKING: Final = ("presence", "negation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A valid predicate, and a function that returns the expression of a part of its tree."""

    tree: Tree[Token]
    operands: Sequence[Operand]
    expression_of: Callable[[Tree[Token]], Expression]

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All attributes that it reads."""
        return attributes_of(self.operands)


def certainty_in(vocabulary: Vocabulary, effort: Effort) -> Certainty:
    """Return an object that answers questions about the predicates of a file."""

    def attribute_of(reading: Reading) -> Attribute | None:
        return vocabulary.find(reading.scope, reading.name)

    return Certainty(attribute_of=attribute_of, effort=effort)


def check_truth(predicate: Predicate, certainty: Certainty, notebook: Notebook, /) -> None:
    """Note a predicate that is never true; warn of one that is always true, and of its largest such parts."""
    if not certainty.is_never_true(predicate.expression_of(predicate.tree), predicate.operands):
        _check_part(predicate.tree, predicate, certainty, notebook=notebook)
        return
    names = sorted({str(reading) for reading in predicate.readings})
    hint = f"no value of {names[0]} makes it so" if len(names) == 1 else "its parts contradict each other"
    notebook.error(span_of(predicate.tree), Code.NEVER_TRUE, "this is never true", hint=hint if names else "")


def check_presence(predicate: Predicate, certainty: Certainty, notebook: Notebook, /) -> None:
    """Warn of a vain `has`, and of `not` over an optional attribute, which is false where that is unset."""
    operands = {operand.key: operand for operand in predicate.operands}
    needed = {(reading.scope, reading.name) for reading in predicate.readings if reading.is_needed}
    for part in _all_parts(predicate.tree):
        used: tuple[Reading, ...] = ()
        if part.data in _ASKING:
            used = attributes_of(operands[name] for name, _ in uses_of(predicate.expression_of(part)))
        if part.data == "presence" and (used[0].scope, used[0].name) in needed:
            name = str(used[0])
            hint = f"where {name} is unset all of it is false: write {name} default ... for the other use"
            notebook.warning(span_of(part), Code.VAIN_PRESENCE, f"{name} must be set for this in any case", hint=hint)
        elif part.data == "negation":
            unset = sorted({str(each) for each in used if each.is_needed and _is_optional(each, certainty)})
            for name in unset[:1]:
                message = f"{name} may be unset, and then this is false, not true"
                hint = f"give it a value: {name} default ..."
                notebook.warning(first_token(part), Code.NEGATED_OPTIONAL, message, hint=hint)


def _all_parts(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    yield tree
    for part in trees_in(tree):
        yield from _all_parts(part)


def _is_optional(reading: Reading, certainty: Certainty) -> bool:
    attribute = certainty.attribute_of(reading)
    return attribute is not None and attribute.is_optional


def span_of(tree: Tree[Token]) -> Token:
    """Return all words of a tree as one token."""
    first, last = first_token(tree), last_token(tree)
    return Token("SPAN", str(first), start_pos=first.start_pos, end_pos=last.end_pos)


def _check_part(part: Tree[Token], predicate: Predicate, certainty: Certainty, *, notebook: Notebook) -> None:
    if part.data in _WRAPPERS:
        _check_part(trees_in(part)[0], predicate, certainty, notebook=notebook)
        return
    expression = predicate.expression_of(part)
    if certainty.is_always_true(expression, predicate.operands):
        asked = sorted({str(reading) for reading in predicate.readings if reading.default is None})
        hint = f"to ask whether {asked[0]} is set, write has {asked[0]}" if len(asked) == 1 else ""
        notebook.warning(span_of(part), Code.ALWAYS_TRUE, "this is true for all values", hint=hint)
    elif certainty.is_never_true(expression, predicate.operands):
        notebook.warning(span_of(part), Code.DEAD_PART, "this part is never true", hint="remove it, or correct it")
    elif certainty.effort.left > 0:
        for each in trees_in(part):
            if each.data in _PARTS:
                _check_part(each, predicate, certainty, notebook=notebook)
