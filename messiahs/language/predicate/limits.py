"""Limits of predicates, counted before the parser sees a word, so that they bound its work and all recursion."""

from collections.abc import Iterable, Iterator
from typing import Final

from lark import Token

LENGTH_LIMIT_BYTES: Final = 4096
NESTING_LIMIT: Final = 64
COMPARISON_LIMIT: Final = 256


class TooMuchError(Exception):
    """A word exceeds a limit; the text of the exception names the limit."""

    def __init__(self, message: str, word: Token) -> None:
        super().__init__(message)
        self.word = word


def is_too_long(text: str) -> bool:
    """Return whether a text has more bytes than a predicate may have."""
    return len(text) > LENGTH_LIMIT_BYTES or len(text.encode(errors="surrogatepass")) > LENGTH_LIMIT_BYTES


def bounded(words: Iterable[Token]) -> Iterator[Token]:
    """Yield the words while they are within the limits, so that a parser never sees a text beyond them.

    Parentheses and `not` nest; each comparator, `has` and `like`, and each value of a list after `in`, is a comparison.
    Each `+`, `-`, `*` and `/` of a policy file counts as one, too.
    Raises TooMuchError at a word that exceeds a limit.
    """
    depth, comparisons = 0, 0
    negations = [0]  # of the current term, one number for each open parenthesis
    for word in words:
        match word.type:
            case "VARIABLE" | "INTEGER" | "TEXT":
                pass
            case "COMPARATOR" | "EQUAL" | "IN" | "LIKE" | "HAS" | "COMMA" | "ADD" | "MUL":
                comparisons += 1
            case "AND" | "XOR" | "OR":
                depth -= negations[-1]
                negations[-1] = 0
            case "NOT":
                negations[-1] += 1
                depth += 1
            case "LPAR":
                negations.append(0)
                depth += 1
            case "RPAR" if len(negations) > 1:
                depth -= 1 + negations.pop()
        if depth > NESTING_LIMIT:
            raise TooMuchError(f"parentheses and `not` are nested deeper than {NESTING_LIMIT}", word)
        if comparisons > COMPARISON_LIMIT:
            what = "comparisons and operations" if word.type in {"ADD", "MUL"} else "comparisons"
            raise TooMuchError(f"there are more than {COMPARISON_LIMIT} {what}", word)
        yield word
