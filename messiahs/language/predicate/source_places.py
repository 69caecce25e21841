"""Errors that show their place in a text."""

import re
from typing import Final

from messiahs.errors import PredicateError

_WORD_SHOWN: Final = 40
_UNSHOWABLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def error_at(text: str, offset: int, message: str, hint: str = "", /) -> PredicateError:
    """Give the error for the character at `offset`; the text in it is safe to print and keeps its columns."""
    return PredicateError(
        message,
        line=text.count("\n", 0, offset) + 1,
        column=offset - text.rfind("\n", 0, offset),
        source=showable(text),
        hint=hint,
    )


def quoted(word: str) -> str:
    """Give a word of the text for a message: shortened, and safe to print."""
    if len(word) == 1 and not word.isprintable():
        return f"U+{ord(word):04X}"
    return f"`{showable(word[:_WORD_SHOWN])}{'...' if len(word) > _WORD_SHOWN else ''}`"


def showable(text: str) -> str:
    """Give a text that is safe to print, with every character in its column."""
    # One character for one, so that a caret under the line stands right. A carriage return or a form feed would
    # end a line for `splitlines` and not for us, and a tab is wider than its caret.
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " ").replace("\r", " "))
