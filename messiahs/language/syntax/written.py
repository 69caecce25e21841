"""A predicate as its owner wrote it: comparisons under the words that join them, for whoever explains a decision.

What decides is the expression (syntax.py), in which `let` is expanded and `in` is several comparisons. This is the same
predicate with its texts and places, and judged part by part it has the same value.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from lark import Token, Tree

from messiahs.language.predicate.syntax import Expression
from messiahs.language.syntax.parsing import first_token, on_one_line, trees_in


class Joint(StrEnum):
    """What makes one part of several, or of one."""

    AND = "and"
    XOR = "xor"
    OR = "or"
    NOT = "not"
    LET = "let"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A comparison, an `in`, a `like` or a `has`; `start` counts characters of the file from 0."""

    text: str
    start: int
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """Parts and their joint; `not` and `let` have one part.

    `name` is that of the `let`, and `start` where in the file its meaning begins, counted from 0.
    """

    joint: Joint
    parts: "tuple[Written, ...]"
    name: str = ""
    start: int = 0


Written = Term | Compound


class Named(Protocol):
    """A `let`: what it stands for."""

    @property
    def tree(self) -> Tree[Token]:
        """The predicate behind the name."""


_JOINTS: Final = {"disjunction": Joint.OR, "exclusion": Joint.XOR, "conjunction": Joint.AND}


def written_of(
    tree: Tree[Token], lets: Mapping[str, Named | None], expression_of: Callable[[Tree[Token]], Expression], /
) -> Written:
    """Give the written form of a well-formed predicate; `expression_of` says what one of its terms means."""
    match tree.data:
        case "predicate" | "group":
            return written_of(trees_in(tree)[0], lets, expression_of)
        case "negation":
            return Compound(joint=Joint.NOT, parts=_parts(tree, lets, expression_of))
        case "let_use":
            let = lets[first_token(tree)]
            assert let is not None, "a bad `let` is a mistake, and this is for predicates without any"
            part = written_of(let.tree, lets, expression_of)
            start = start_of(let.tree)
            return Compound(joint=Joint.LET, parts=(part,), name=str(first_token(tree)), start=start)
        case rule if rule in _JOINTS:
            return Compound(joint=_JOINTS[rule], parts=_parts(tree, lets, expression_of))
        case _:
            words = tuple(tree.scan_values(lambda value: isinstance(value, Token)))
            return Term(text=on_one_line(words), start=start_of(tree), expression=expression_of(tree))


def terms_of(written: Written) -> Iterator[Term]:
    """Give every term in the order of the text, those of a `let` at the place of its use."""
    match written:
        case Term():
            yield written
        case Compound():
            for part in written.parts:
                yield from terms_of(part)


def text_of(written: Written) -> str:
    """Write a predicate on one line, a `let` by its name."""
    match written:
        case Term():
            return written.text
        case Compound(joint=Joint.LET):
            return written.name
        case Compound(joint=Joint.NOT):
            return f"not {_bracketed(written.parts[0])}"
        case Compound():
            return f" {written.joint} ".join(map(_bracketed, written.parts))


def start_of(tree: Tree[Token]) -> int:
    """Give where in the file a predicate begins, counted from 0."""
    return first_token(tree).start_pos or 0


def _bracketed(written: Written) -> str:
    is_single = isinstance(written, Term) or written.joint in {Joint.LET, Joint.NOT}
    return text_of(written) if is_single else f"({text_of(written)})"


def _parts(
    tree: Tree[Token], lets: Mapping[str, Named | None], expression_of: Callable[[Tree[Token]], Expression]
) -> tuple[Written, ...]:
    return tuple([written_of(part, lets, expression_of) for part in trees_in(tree)])
