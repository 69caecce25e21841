"""Predicates that a hostile neighbor may send, from `predicates.json` beside this file, by name.

A text is stored as pieces with the number of their repetitions; bytes that are not text are in hexadecimal.
"""

import json
from pathlib import Path

Recipes = dict[str, list[tuple[str, int]]]

_FILE = Path(__file__).with_suffix(".json")


def refused_texts() -> dict[str, str]:
    """Return texts that are not predicates, or too large."""
    return _texts("refused")


def costly_texts() -> dict[str, str]:
    """Return predicates within every limit that cost as much as a predicate can."""
    return _texts("costly")


def refused_bytes() -> dict[str, bytes]:
    """Return bytes that must be refused as sent, and also bytes that are not UTF-8."""
    texts = {name: text.encode(errors="surrogatepass") for name, text in refused_texts().items()}
    return texts | {name: bytes.fromhex(digits) for name, digits in json.loads(_FILE.read_text())["not_utf8"].items()}


def _texts(part: str) -> dict[str, str]:
    recipes: Recipes = json.loads(_FILE.read_text())[part]
    return {name: "".join(piece * times for piece, times in pieces) for name, pieces in recipes.items()}
