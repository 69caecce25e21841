"""The TextMate grammar of policy files, generated from the tables of the scanner."""

import json
from typing import Final

from messiahs.language.predicate.syntax import COMPARATORS
from messiahs.language.syntax.scanning import KEYWORDS, SCOPES
from messiahs.language.syntax.statements import ITEM_WORDS

_OPERATORS: Final = frozenset({"and", "or", "xor", "not", "in", "like", "has", "default"})
_BEFORE_NUMBERS: Final = [
    "and",
    "default",
    "else",
    "int",
    "least",
    "most",
    "not",
    "or",
    "require",
    "unless",
    "when",
    "where",
    "xor",
]
"""Words after which a minus sign is part of the number; elsewhere it may subtract."""
_UNITS: Final = "[kMGTP]i?B|KiB|B|ms|s|min|h|d|w|%|:[0-5][0-9]"


def textmate_grammar() -> str:
    """Return the grammar as JSON; its patterns mean the same in Oniguruma and in Python."""
    blocks = {word.lower() for word in ITEM_WORDS}
    comparing = sorted(word for word in COMPARATORS if word.isalpha())
    behind_words = "|".join(rf"(?<=\b{word} )" for word in _BEFORE_NUMBERS)
    minus = rf"(?:(?:(?<=[-+*/(,=<>.])|(?<=[-+*/(,=<>.] )|{behind_words})-)?"
    signs = sorted((word for word in COMPARATORS if not word.isalpha()), key=lambda word: (-len(word), word))
    patterns = [
        {"name": "comment.line.number-sign.messiahs-policy", "match": "#.*$"},
        {
            "name": "string.quoted.double.messiahs-policy",
            "begin": '"',
            "end": '"|$',
            "patterns": [
                {"name": "constant.character.escape.messiahs-policy", "match": r'\\["\\nt]'},
                {"name": "invalid.illegal.escape.messiahs-policy", "match": r"\\."},
            ],
        },
        {
            "name": "variable.other.messiahs-policy",
            "match": rf"\$(?:(?:{'|'.join(SCOPES)})\.)?[A-Za-z_][A-Za-z0-9_]{{0,63}}",
        },
        {
            "name": "constant.numeric.messiahs-policy",
            "match": (rf"{minus}(?<!\w)(?<![0-9][.:])[0-9]+(?:\.[0-9]{{1,2}})?(?:{_UNITS})?(?![A-Za-z0-9_:%]|\.[0-9])"),
        },
        {"name": "keyword.control.messiahs-policy", "match": _any_of(blocks)},
        {"name": "keyword.operator.word.messiahs-policy", "match": _any_of({*_OPERATORS, *comparing})},
        {"name": "keyword.other.messiahs-policy", "match": _any_of(KEYWORDS - blocks - _OPERATORS)},
        {"name": "keyword.operator.messiahs-policy", "match": rf"{'|'.join(signs)}|\.\.|[-+*/]"},
        {"name": "punctuation.messiahs-policy", "match": "[{}();,:]"},
    ]
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "MESSIAHS policy",
        "scopeName": "source.messiahs-policy",
        "fileTypes": ["policy"],
        "patterns": patterns,
    }
    return json.dumps(grammar, indent=2) + "\n"


def _any_of(words: set[str] | frozenset[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(words))})\b"
