"""The words of a predicate and its limits, checked in one pass over the text (MESSIAHS 5.4).

A predicate comes from strangers: nothing recursive sees a text before it has passed here.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NoReturn

from messiahs.core.attributes import INTEGER_HIGHEST, INTEGER_LOWEST
from messiahs.language.predicate.places import error_at, quoted
from messiahs.language.predicate.syntax import COMPARATORS, Connective

LENGTH_LIMIT_BYTES: Final = 4096
NESTING_LIMIT: Final = 64
COMPARISON_LIMIT: Final = 256

_KEYWORDS: Final = frozenset({"not", *Connective, *COMPARATORS})
_COUNTED: Final = _KEYWORDS | {"(", ")"}
_INTEGER_DIGITS: Final = 19

# Every character belongs to one token, and none is looked at more than a fixed number of times.
_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<string>"(?:\\[^\n]|[^"\\\n])*")
    | (?P<quote>")
    | (?P<variable>\$[\w.]*)
    | (?P<number>-?[0-9][\w.%:]*)
    | (?P<word>\w+)
    | (?P<symbol>==|!=|=<|=>|&&|\|\||<=|>=|<>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
FORBIDDEN: Final = re.compile(r"[\x00\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_VARIABLE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]{0,63}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_ESCAPE: Final = re.compile(r"\\(.)")
CONTROL: Final = re.compile(r"[\x00-\x1f]")

_POLICY_FILES_ONLY: Final = "it exists in policy files only"
_WORD_HINTS: Final = {
    "lt": "write ls for strings, < for integers",
    "gt": "write gr for strings, > for integers",
} | dict.fromkeys(("in", "like", "has", "default", "let"), _POLICY_FILES_ONLY)
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
    "#": "comments exist in policy files only",
    "-": "a minus sign stands directly before its digits; there is no arithmetic",
}


@dataclass(slots=True, kw_only=True)
class _Sizes:
    """What has been seen so far; mutable. `negations` counts those of the current term, per open parenthesis."""

    comparisons: int = 0
    depth: int = 0
    negations: list[int] = field(default_factory=lambda: [0])


def scan(text: str) -> None:
    """Refuse a text that is too long or too deep, has too many comparisons, or holds anything but the language's words.

    Afterwards a text may still be put together wrongly, but reading it costs little and recursion in it is bounded.
    """
    _check_length(text)
    forbidden = FORBIDDEN.search(text)
    if forbidden:
        message = f"the character U+{ord(forbidden[0]):04X} is not allowed anywhere in a predicate"
        raise error_at(
            text, forbidden.start(), message, "remove it: unseen characters make a text look like another one"
        )
    sizes = _Sizes()
    for token in _TOKEN.finditer(text):
        if token[0] in _COUNTED:
            _check_sizes(text, token, sizes)
        else:
            _check_token(text, token)


def is_too_long(text: str) -> bool:
    """Say whether a text has more bytes than a predicate may have."""
    return len(text) > LENGTH_LIMIT_BYTES or len(text.encode(errors="surrogatepass")) > LENGTH_LIMIT_BYTES


def _check_length(text: str) -> None:
    if is_too_long(text):
        message = f"the predicate is longer than {LENGTH_LIMIT_BYTES} bytes"
        # A megabyte would be kept and searched for a few words of it.
        raise error_at(text[:LENGTH_LIMIT_BYTES], 0, message, "ask for less, or in fewer words")


def _check_sizes(text: str, token: re.Match[str], sizes: _Sizes) -> None:
    match token[0]:
        case "(":
            sizes.negations.append(0)
            sizes.depth += 1
        case ")" if len(sizes.negations) > 1:
            sizes.depth -= 1 + sizes.negations.pop()
        case "not":
            sizes.negations[-1] += 1
            sizes.depth += 1
        case "and" | "xor" | "or":
            sizes.depth -= sizes.negations[-1]
            sizes.negations[-1] = 0
        case word if word in COMPARATORS:
            sizes.comparisons += 1
    if sizes.depth > NESTING_LIMIT:
        raise error_at(text, token.start(), f"parentheses and `not` are nested deeper than {NESTING_LIMIT}")
    if sizes.comparisons > COMPARISON_LIMIT:
        raise error_at(text, token.start(), f"there are more than {COMPARISON_LIMIT} comparisons")


def _check_token(text: str, token: re.Match[str]) -> None:
    match token.lastgroup:
        case "string":
            _check_string(text, token)
        case "quote":
            raise error_at(text, token.start(), "the string has no end", 'a string ends with " on its own line')
        case "variable":
            _check_variable(text, token)
        case "number":
            _check_number(text, token)
        case "word":
            _check_word(text, token)
        case "symbol":
            _check_symbol(text, token)


def _check_string(text: str, token: re.Match[str]) -> None:
    for escape in _ESCAPE.finditer(token[0]):
        if escape[1] not in '"\\nt':
            hint = r"the escapes are \" \\ \n \t; write \\ for a backslash"
            raise error_at(text, token.start() + escape.start(), f"{quoted(escape[0])} is no escape", hint)
    control = CONTROL.search(token[0])
    if control:
        message = f"the string holds the control character U+{ord(control[0]):04X}"
        raise error_at(text, token.start() + control.start(), message, r"a tab is written \t, a new line \n")


def _check_variable(text: str, token: re.Match[str]) -> None:
    if _VARIABLE.fullmatch(token[0]):
        return
    if "." in token[0]:
        message = f"{quoted(token[0])} has a scope"
        raise error_at(text, token.start(), message, "a predicate sees one description only: write the bare name")
    hint = "$ and 1 to 64 ASCII letters, digits and _, the first no digit"
    raise error_at(text, token.start(), f"{quoted(token[0])} is no variable", hint)


def _check_number(text: str, token: re.Match[str]) -> None:
    if not _INTEGER.fullmatch(token[0]):
        hint = "write a plain decimal integer: bytes, seconds or 1/100 %"
        raise error_at(text, token.start(), f"{quoted(token[0])} is no integer", hint)
    digits = token[0].lstrip("-").lstrip("0")
    if len(digits) > _INTEGER_DIGITS or not INTEGER_LOWEST <= int(token[0]) <= INTEGER_HIGHEST:
        hint = f"integers go from {INTEGER_LOWEST} to {INTEGER_HIGHEST}"
        raise error_at(text, token.start(), "the integer does not fit into 64 bits", hint)


def _check_word(text: str, token: re.Match[str]) -> NoReturn:
    word = token[0]
    if word in _WORD_HINTS:
        hint = _WORD_HINTS[word]
    elif word.lower() in _KEYWORDS:
        hint = f"write {word.lower()}"
    elif _NAME.fullmatch(word):
        hint = f'write ${word} for the attribute, or "{word}" for the string'
    else:
        hint = "attributes begin with $, strings stand in double quotes"
    raise error_at(text, token.start(), f"{quoted(word)} is no word of the language", hint)


def _check_symbol(text: str, token: re.Match[str]) -> NoReturn:
    hint = SYMBOL_HINTS.get(token[0], "")
    raise error_at(text, token.start(), f"{quoted(token[0])} means nothing here", hint)
