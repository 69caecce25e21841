"""The TextMate grammar in the engine of editors colours what the scanner finds, word by word.

The test needs node with its packages vscode-textmate and vscode-oniguruma: install them with npm in any folder, and set
NODE_PATH to the `node_modules` there.
"""

import json
import re
import shutil
import subprocess
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from lark import Token

from messiahs.language.predicate.syntax import COMPARATORS
from messiahs.language.syntax.problems import Notebook
from messiahs.language.syntax.scanning import BAD, KEYWORDS, tokens_in
from messiahs.language.syntax.statements import ITEM_WORDS

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
GRAMMAR = ROOT / "docs" / "messiahs-policy.tmLanguage.json"
EXAMPLES = re.compile(r"^```policy[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SUFFIX = ".messiahs-policy"
MADE = """attribute $x int -5..-1; attribute $y int 0..16; # \U0001f600 policy "x" $y 4GiB
let a = $x default -4 >= -3 and not -2 < $x or $y = -1 xor $x in (-4, -3) and (-2 = $x);
advertise every 1min { set $y = 10-3 when $x -3 eq "\U0001f600\\" # -3" else $y - 3 * -2 / 4+-1; }  # behind
rank candidates by most $x -1, least -4 + ($y)-3, most (12.5%-1min) - 20:00 + 07:05, random;
"""
OPERATORS = frozenset({"and", "or", "xor", "not", "in", "like", "has", "default"})
SCOPES = {
    "VARIABLE": "variable.other",
    "INTEGER": "constant.numeric",
    "QUANTITY": "constant.numeric",
    "TEXT": "string.quoted.double",
    "NAME": "",
    **dict.fromkeys(("RANGE", "EQUAL", "ADD", "MUL"), "keyword.operator"),
    **dict.fromkeys(("LBRACE", "RBRACE", "LPAR", "RPAR", "SEMICOLON", "COMMA", "COLON"), "punctuation"),
}
Paint = list[str]
"""The outermost scope of each character of a text; empty where there is none."""


def _texts() -> dict[str, str]:
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "policies").glob("*.policy"))}
    for page in sorted((ROOT / "docs").glob("*.md")):
        for number, example in enumerate(EXAMPLES.findall(page.read_text(encoding="utf-8"))):
            found[f"{page.name} {number}"] = example
    return {**found, "made": MADE}


@pytest.fixture(scope="module")
def node() -> str:
    """Find node, which finds the engine."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        pytest.skip("node is not installed")
    finds = 'require("vscode-textmate"); require("vscode-oniguruma")'
    if subprocess.run([program, "-e", finds], capture_output=True, check=False, cwd=ROOT).returncode:
        pytest.skip("node finds no engine: npm install vscode-textmate vscode-oniguruma, and set NODE_PATH")
    return program


def _painted(node: str, texts: list[str]) -> list[Paint]:
    asked = json.dumps({"grammar": str(GRAMMAR), "texts": texts})
    script = str(Path(__file__).parent / "tokenize.js")
    done = subprocess.run([node, script], input=asked, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return [_paint(text, lines) for text, lines in zip(texts, json.loads(done.stdout), strict=True)]


def _paint(text: str, lines: list[list[Any]]) -> Paint:
    paint: Paint = []
    for line, found in zip(text.split("\n"), lines, strict=True):
        # The engine counts in units of UTF-16.
        units = dict.fromkeys(accumulate((len(each.encode("utf-16-le")) // 2 for each in line), initial=0))
        places = {unit: place for place, unit in enumerate(units)}
        own = [""] * (len(line) + 1)
        for start, end, scope in found:
            for place in range(places[start], places.get(end, len(line))):
                own[place] = scope.split(" ")[0].removesuffix(SUFFIX)
        paint += own
    return paint


def _expected(token: Token) -> str:
    if token.type == "COMPARATOR" or token in OPERATORS:
        return "keyword.operator.word" if token.isalpha() else "keyword.operator"
    if token.type in SCOPES:
        return SCOPES[token.type]
    return "keyword.control" if token.type in ITEM_WORDS else "keyword.other"


def test_every_word_of_every_policy_and_example_is_painted_as_what_it_is(node: str) -> None:
    texts = _texts()
    wrong, words = [], 0
    for (name, text), paint in zip(texts.items(), _painted(node, list(texts.values())), strict=True):
        place = 0
        for token in tokens_in(Notebook(file=name, text=text)):
            assert token.start_pos is not None
            assert token.end_pos is not None
            between = set(zip(text[place : token.start_pos], paint[place : token.start_pos], strict=True))
            wrong += [
                (name, "between", *each) for each in between if not each[0].isspace() and "comment" not in each[1]
            ]
            place = token.end_pos
            words += 1
            if token.type != BAD and set(paint[token.start_pos : place]) != {_expected(token)}:
                wrong.append((name, token.type, str(token), ", ".join(paint[token.start_pos : place])))
    assert wrong == []
    assert words > 3000
    assert len(texts) > 60


@pytest.mark.parametrize("word", ["4G", "15m", "1.234s", "7x", "5:60", "20:005", "1.5.2"])
def test_an_invalid_number_is_not_painted_as_one(node: str, word: str) -> None:
    (paint,) = _painted(node, [f"require $x < {word};"])
    assert "constant.numeric" not in paint


def test_keywords_and_comparators_are_painted_alone_and_not_inside_of_names(node: str) -> None:
    words = sorted(KEYWORDS | {each for each in COMPARATORS if each.isalpha()})
    alone = _painted(node, words)
    longer = _painted(node, [f"{word}_x x_{word} q{word} {word}9" for word in words])
    assert [word for word, paint in zip(words, alone, strict=True) if not paint[0].startswith("keyword")] == []
    assert [word for word, paint in zip(words, longer, strict=True) if set(paint) != {""}] == []


def test_a_string_without_an_end_spoils_its_line_alone(node: str) -> None:
    text = 'require $a eq "ab\\"c # $x\nlimit 9 tasks; # "\n"\U0001f600" $y'
    (paint,) = _painted(node, [text])
    assert set(paint[text.index('"') : text.index("\n")]) == {"string.quoted.double"}
    assert paint[text.index("limit")] == "keyword.other"
    assert paint[text.index('# "')] == "comment.line.number-sign"
    assert paint[text.index("$y")] == "variable.other"
