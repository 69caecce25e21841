"""The order of the words of a predicate, and its limits (MESSIAHS 5.4).

A predicate comes from strangers: nothing recursive sees a text before it has passed here. So whatever is refused costs
one look at each word, and what has passed is a sentence of the grammar.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from messiahs.errors import PredicateError
from messiahs.language.predicate.places import error_at, quoted
from messiahs.language.predicate.scanning import COMPARISON_LIMIT, NESTING_LIMIT, Word, words_of


class _Place(Enum):
    """What may follow, anywhere in a text."""

    BEFORE_TERM = "a comparison, a negation or a parenthesis"
    BEFORE_COMPARATOR = "a comparator"
    BEFORE_SECOND = "the second operand"
    BEHIND_TERM = "the end of this or of the whole"


_OPERANDS: Final = ("VARIABLE", "INTEGER", "STRING")
_CONNECTIVES: Final = ("AND", "XOR", "OR")
_NEXT: Final[dict[_Place, dict[str, _Place]]] = {
    _Place.BEFORE_TERM: dict.fromkeys(_OPERANDS, _Place.BEFORE_COMPARATOR)
    | dict.fromkeys(("NOT", "LPAR"), _Place.BEFORE_TERM),
    _Place.BEFORE_COMPARATOR: {"COMPARATOR": _Place.BEFORE_SECOND},
    _Place.BEFORE_SECOND: dict.fromkeys(_OPERANDS, _Place.BEHIND_TERM),
    _Place.BEHIND_TERM: dict.fromkeys(_CONNECTIVES, _Place.BEFORE_TERM) | {"RPAR": _Place.BEHIND_TERM},
}
_END: Final = "end"


@dataclass(slots=True)
class _Nesting:
    """How deep a text is where it was read to; mutable.

    `negations` counts those of the current term, per open parenthesis.
    """

    depth: int = 0
    negations: list[int] = field(default_factory=lambda: [0])

    @property
    def is_open(self) -> bool:
        """Whether a parenthesis is open."""
        return len(self.negations) > 1

    def add(self, terminal: str) -> None:
        """Go on by a word that is neither operand nor comparator; there is a `(` for each `)`."""
        match terminal:
            case "LPAR":
                self.negations.append(0)
                self.depth += 1
            case "RPAR":
                self.depth -= 1 + self.negations.pop()
            case "NOT":
                self.negations[-1] += 1
                self.depth += 1
            case _:
                self.depth -= self.negations[-1]
                self.negations[-1] = 0


def sentence_of(text: str) -> list[Word]:
    """Give the words of a text if they are a sentence of the grammar within all limits. Raises PredicateError.

    Reading it costs little then, and recursion in it is bounded.
    """
    words: list[Word] = []
    comparisons, nesting, place = 0, _Nesting(), _Place.BEFORE_TERM
    for word in words_of(text):
        terminal = word.terminal
        following = _NEXT[place].get(terminal)
        if following is None or (terminal == "RPAR" and not nesting.is_open):
            raise _misplaced(text, word, place)
        if place is _Place.BEFORE_COMPARATOR:
            comparisons += 1
            if comparisons > COMPARISON_LIMIT:
                raise error_at(text, word.start, f"there are more than {COMPARISON_LIMIT} comparisons")
        elif terminal not in _OPERANDS:
            nesting.add(terminal)
            if nesting.depth > NESTING_LIMIT:
                raise error_at(text, word.start, f"parentheses and `not` are nested deeper than {NESTING_LIMIT}")
        place = following
        words.append(word)
    if words and (place is not _Place.BEHIND_TERM or nesting.is_open):
        raise _misplaced(text, Word(_END, "", len(text.rstrip())), place)
    return words


def _misplaced(text: str, word: Word, place: _Place) -> PredicateError:
    message, hint = _what_is_wrong(word.terminal, place)
    where = "at the end" if word.terminal == _END else f"before {quoted(word.text)}"
    return error_at(text, word.start, message.format(where=where), hint)


def _what_is_wrong(terminal: str, place: _Place) -> tuple[str, str]:
    """Tell by what could have stood in the place of a word why that one cannot."""
    match place, terminal:
        case _Place.BEFORE_COMPARATOR, _:
            return "a comparator is missing {where}", "a predicate is made of comparisons, like $mem <= 4000000"
        case _Place.BEFORE_TERM, _:
            return "a comparison is missing {where}", ""
        case _Place.BEFORE_SECOND, _:
            return "the second operand is missing {where}", "compare with a variable, an integer or a string"
        case _, "COMPARATOR":
            return "comparisons do not chain", "write 1 < $x and $x < 3 for 1 < $x < 3"
        case _, "RPAR":
            return "a `(` is missing {where}", ""
        case _, "end":
            return "a `)` is missing {where}", ""
        case _:
            return "`and`, `xor` or `or` is missing {where}", ""
