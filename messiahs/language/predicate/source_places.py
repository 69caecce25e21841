"""Errors that show their position in a text."""

import re
from typing import Final

from messiahs.errors import PredicateError

_WORD_SHOWN: Final = 40
_UNSHOWABLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def error_at(text: str, offset: int, message: str, hint: str = "", /) -> PredicateError:
    """Return the error for the character at `offset`; its text is safe to print and keeps the columns."""
    return PredicateError(
        message,
        line=text.count("\n", 0, offset) + 1,
        column=offset - text.rfind("\n", 0, offset),
        source=showable(text),
        hint=hint,
    )


def quoted(word: str) -> str:
    """Return a word for a message: shortened, and safe to print."""
    if len(word) == 1 and not word.isprintable():
        return f"U+{ord(word):04X}"
    return f"`{showable(word[:_WORD_SHOWN])}{'...' if len(word) > _WORD_SHOWN else ''}`"


def showable(text: str) -> str:
    """Return a text that is safe to print, with every character in its column."""
    # Characters are replaced one for one, so that a caret below the line is in the right column. A carriage return or a
    # form feed would end a line for `splitlines` but not here, and a tab is wider than its caret.
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " ").replace("\r", " "))
