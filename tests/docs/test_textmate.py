"""The TextMate grammar colours every word of the shipped policies as the scanner classifies it."""

import json
import re
from pathlib import Path

import pytest

from messiahs.language.syntax.problems import Notebook
from messiahs.language.syntax.scanning import KEYWORDS, tokens_in
from tests.docs.textmate import textmate_grammar

ROOT = Path(__file__).parents[2]
GRAMMAR = json.loads(textmate_grammar())
EXPECTED = {
    "VARIABLE": "variable.other",
    "INTEGER": "constant.numeric",
    "QUANTITY": "constant.numeric",
    "TEXT": "string.quoted.double",
    "RANGE": "keyword.operator",
    "EQUAL": "keyword.operator",
    "ADD": "keyword.operator",
    "MUL": "keyword.operator",
}


def _painted(line: str) -> dict[int, tuple[int, str]]:
    """Give for every place where something begins its end and its colour, as an editor does it line by line."""
    found: dict[int, tuple[int, str]] = {}
    place = 0
    while place < len(line):
        matches = [(re.compile(_pattern(each)).search(line, place), str(each["name"])) for each in GRAMMAR["patterns"]]
        first = min(((match.start(), at) for at, (match, _) in enumerate(matches) if match), default=None)
        if first is None:
            break
        match, name = matches[first[1]]
        assert match is not None
        found[match.start()] = (match.end(), name.removesuffix(".messiahs-policy"))
        place = max(match.end(), place + 1)
    return found


def _pattern(rule: dict[str, str]) -> str:
    return rule.get("match") or r'"(?:\\.|[^"\\])*("|$)'


@pytest.mark.parametrize("path", sorted((ROOT / "policies").glob("*.policy")), ids=lambda path: path.stem)
def test_every_word_has_its_colour(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines, start = {}, 0
    for line in text.split("\n"):
        lines[start] = _painted(line)
        start += len(line) + 1
    tokens = list(tokens_in(Notebook(file="x", text=text)))
    for token in tokens:
        if token.type == "NAME":
            continue  # the name of a `let`, of a timeout
        assert token.start_pos is not None
        begin = text.rfind("\n", 0, token.start_pos) + 1
        end, name = lines[begin][token.start_pos - begin]
        assert begin + end == token.end_pos, token
        expected = EXPECTED.get(token.type, "keyword" if token in KEYWORDS else "")
        assert name.startswith(expected), (token, name)
    assert len(tokens) > 10


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_every_keyword_is_painted_and_longer_words_are_not(word: str) -> None:
    assert _painted(word)[0][1].startswith("keyword")
    assert _painted(f"{word}x") == {}


@pytest.mark.parametrize("number", ["4G", "15m", "1.234s", "7x"])
def test_an_invalid_quantity_is_not_painted_as_one(number: str) -> None:
    assert all(name != "constant.numeric" for _, name in _painted(number).values())
