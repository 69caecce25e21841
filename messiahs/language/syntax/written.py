"""A predicate as its owner wrote it: comparisons and the words that join them, for explanations.

Decisions use the expression (syntax.py), in which `let` is expanded and `in` is several comparisons. This is the same
predicate with its texts and positions, and has the same value when evaluated part by part.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from lark import Token, Tree

from messiahs.language.predicate.syntax import Expression
from messiahs.language.syntax.parsing import first_token, on_one_line, trees_in


class Joint(StrEnum):
    """How the parts of a compound are joined."""

    AND = "and"
    XOR = "xor"
    OR = "or"
    NOT = "not"
    LET = "let"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A comparison, an `in`, a `like` or a `has`; `start` is an offset in the file, in characters from 0."""

    text: str
    start: int
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """Joined parts; `not` and `let` have one part.

    For a `let`, `name` is its name and `start` the offset of its definition in the file, in characters from 0.
    """

    joint: Joint
    parts: "tuple[Written, ...]"
    name: str = ""
    start: int = 0


Written = Term | Compound


class Named(Protocol):
    """A `let` with its definition."""

    @property
    def tree(self) -> Tree[Token]:
        """The predicate that the name stands for."""


_JOINTS: Final = {"disjunction": Joint.OR, "exclusion": Joint.XOR, "conjunction": Joint.AND}


def written_of(
    tree: Tree[Token], lets: Mapping[str, Named | None], expression_of: Callable[[Tree[Token]], Expression], /
) -> Written:
    """Return the written form of a valid predicate; `expression_of` returns the expression of a term."""
    match tree.data:
        case "predicate" | "group":
            return written_of(trees_in(tree)[0], lets, expression_of)
        case "negation":
            return Compound(joint=Joint.NOT, parts=_parts(tree, lets, expression_of))
        case "let_use":
            let = lets[first_token(tree)]
            assert let is not None, "predicates here are valid, and so are their `let`s"
            part = written_of(let.tree, lets, expression_of)
            start = start_of(let.tree)
            return Compound(joint=Joint.LET, parts=(part,), name=str(first_token(tree)), start=start)
        case rule if rule in _JOINTS:
            return Compound(joint=_JOINTS[rule], parts=_parts(tree, lets, expression_of))
        case _:
            words = tuple(tree.scan_values(lambda value: isinstance(value, Token)))
            return Term(text=on_one_line(words), start=start_of(tree), expression=expression_of(tree))


def terms_of(written: Written) -> Iterator[Term]:
    """Yield every term in the order of the text, those of a `let` at the place of its use."""
    match written:
        case Term():
            yield written
        case Compound():
            for part in written.parts:
                yield from terms_of(part)


def text_of(written: Written) -> str:
    """Return a predicate on one line, with each `let` by its name."""
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
    """Return the offset in the file where a predicate begins, in characters from 0."""
    return first_token(tree).start_pos or 0


def _bracketed(written: Written) -> str:
    is_single = isinstance(written, Term) or written.joint in {Joint.LET, Joint.NOT}
    return text_of(written) if is_single else f"({text_of(written)})"


def _parts(
    tree: Tree[Token], lets: Mapping[str, Named | None], expression_of: Callable[[Tree[Token]], Expression]
) -> tuple[Written, ...]:
    return tuple([written_of(part, lets, expression_of) for part in trees_in(tree)])
