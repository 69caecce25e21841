"""Errors of predicates that the grammar refuses, with hints."""

import re
from collections.abc import Set as AbstractSet
from typing import Final

from lark import Token

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST
from messiahs.errors import PredicateError
from messiahs.language.predicate.source_places import error_at, quoted
from messiahs.language.predicate.syntax import COMPARATORS, Connective

CONTROL: Final = re.compile(r"[\x00-\x1f]")
NO_ARITHMETIC: Final = "arithmetic exists in policy files only: what leaves the host is made of comparisons"
SYMBOL_HINTS: Final = {
    "==": "write = for integers, eq for strings",
    "!=": "write <> for integers, ne for strings",
    "=<": "write <=",
    "=>": "write >=",
    "&&": "write and",
    "&": "write and",
    "||": "write or",
    "|": "write or",
    "!": "write not",
    "^": "write xor",
    "'": "strings stand in double quotes",
    "\ufeff": "this is a byte order mark: save the text as UTF-8 without one",
    "#": "comments exist in policy files only",
} | dict.fromkeys("+-*/", NO_ARITHMETIC)

_KEYWORDS: Final = frozenset({"not", *Connective, *COMPARATORS})
_INTEGER_DIGITS: Final = 19
_POLICY_FILES_ONLY: Final = "it exists in policy files only"
_WORD_HINTS: Final = {
    "lt": "write ls for strings, < for integers",
    "gt": "write gr for strings, > for integers",
} | dict.fromkeys(("in", "like", "has", "default", "let"), _POLICY_FILES_ONLY)

_MEANT: Final = re.compile(
    r"""
      (?P<string>"(?:\\[^\n]|[^"\\\n])*")
    | (?P<quote>")
    | (?P<variable>\$[\w.]*)
    | (?P<number>-?[0-9][\w.%:]*)
    | (?P<word>\w+)
    | (?P<symbol>==|!=|=<|=>|&&|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Possible intentions of the author where no word of the language begins."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ESCAPE: Final = re.compile(r"\\(.)")
_OPERANDS: Final = frozenset({"VARIABLE", "INTEGER", "TEXT"})


def misplaced(token: Token, accepted: AbstractSet[str], *, example: str) -> tuple[str, str] | None:
    """Explain a word where only the `accepted` terminals are allowed: a message and a hint.

    `example` is a comparison for the hint. None if the list of accepted words is the explanation.
    """
    where = before(token)
    if "COMPARATOR" in accepted:
        return f"a comparator is missing {where}", f"a predicate is made of comparisons, like {example}"
    if "NOT" in accepted:
        return f"a comparison is missing {where}", ""
    if accepted >= _OPERANDS:
        return f"the second operand is missing {where}", "compare with a variable, an integer or a string"
    if token.type in {"COMPARATOR", "EQUAL"} and "AND" in accepted:
        return "comparisons do not chain", "write 1 < $x and $x < 3 for 1 < $x < 3"
    if token.type == "RPAR" and not accepted.isdisjoint({"AND", "$END"}):
        return f"a `(` is missing {where}", ""
    if token.type == "$END" and "RPAR" in accepted:
        return f"a `)` is missing {where}", ""
    return None


def before(token: Token) -> str:
    """Return the text for the position before a word; the end of a text is an empty word."""
    return "at the end" if token.type == "$END" and not token else f"before {quoted(token)}"


def no_word(text: str, start: int, /) -> PredicateError:
    """Return the error for a position where no word of the language begins."""
    meant = _MEANT.match(text, start)
    assert meant is not None, "every character is at least a symbol"
    word = meant[0]
    match meant.lastgroup:
        case "string":
            return _no_string(text, word, start)
        case "quote":
            return error_at(text, start, "the string is not closed", 'a string ends with " on its own line')
        case "variable":
            return _no_variable(text, word, start)
        case "number":
            hint = "write a plain decimal integer: bytes, seconds or 1/100 %"
            return error_at(text, start, f"{quoted(word)} is not an integer", hint)
        case "word":
            return error_at(text, start, f"{quoted(word)} is not a word of the language", _word_hint(word))
    return error_at(text, start, f"{quoted(word)} has no meaning here", SYMBOL_HINTS.get(word, ""))


def check_integer(text: str, word: str, start: int, /) -> None:
    """Check that an integer fits into 64 bits; leading zeros do not count. Raises PredicateError."""
    digits = word.lstrip("-").lstrip("0")
    if len(digits) > _INTEGER_DIGITS or not INTEGER_LOWEST <= int(word) <= INTEGER_HIGHEST:
        hint = f"integers go from {INTEGER_LOWEST} to {INTEGER_HIGHEST}"
        raise error_at(text, start, "the integer does not fit into 64 bits", hint)


def _no_string(text: str, word: str, start: int) -> PredicateError:
    for escape in _ESCAPE.finditer(word):
        if escape[1] not in '"\\nt':
            hint = r"the escapes are \" \\ \n \t; write \\ for a backslash"
            return error_at(text, start + escape.start(), f"{quoted(escape[0])} is not an escape", hint)
    control = CONTROL.search(word)
    assert control is not None, "a string has no other mistakes"
    message = f"the string contains the control character U+{ord(control[0]):04X}"
    return error_at(text, start + control.start(), message, r"a tab is written \t, a new line \n")


def _no_variable(text: str, word: str, start: int) -> PredicateError:
    if "." in word:
        message, hint = f"{quoted(word)} has a scope", "a predicate sees one description only: write the bare name"
    else:
        message = f"{quoted(word)} is not a variable"
        hint = "$ and 1 to 64 ASCII letters, digits and _, the first no digit"
    return error_at(text, start, message, hint)


def _word_hint(word: str) -> str:
    if word in _WORD_HINTS:
        return _WORD_HINTS[word]
    if word.lower() in _KEYWORDS:
        return f"write {word.lower()}"
    if _NAME.fullmatch(word):
        return f'write ${word} for the attribute, or "{word}" for the string'
    return "attributes begin with $, strings stand in double quotes"
