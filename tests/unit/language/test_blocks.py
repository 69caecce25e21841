"""A block of policy files declares its syntax in one place, so a new one changes few files."""

import re
from pathlib import Path

import pytest

from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.syntax.blocks import BLOCKS, Block, Body
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import KEYWORDS, tokens_in

LANGUAGE = Path(__file__).parents[3] / "messiahs" / "language"
MOST_FILES = 6


def _files_naming(word: str) -> list[str]:
    """Return the files of the language in which a word stands."""
    files = sorted(path for path in LANGUAGE.rglob("*") if path.suffix in {".py", ".lark"})
    named = re.compile(rf"\b{word}\b", re.IGNORECASE)
    return [str(path.relative_to(LANGUAGE)) for path in files if named.search(path.read_text(encoding="utf-8"))]


def test_a_block_is_named_in_at_most_six_files() -> None:
    files = _files_naming("allocate")
    assert files == ["compiler/allocate.py", "compiler/files.py", "syntax/blocks.py", "syntax/grammar.lark"]
    assert len(files) <= MOST_FILES


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_the_words_of_a_block_are_words_of_the_language_and_of_its_grammar(block: Block) -> None:
    declared = (LANGUAGE / "syntax" / "grammar.lark").read_text(encoding="utf-8")
    for word in (block.word, *block.words.split()):
        assert word in KEYWORDS
        (token,) = tokens_in(Notebook(file="x", text=word))
        assert token.type == word.upper()
        assert re.search(rf"\b{word.upper()}\b", declared)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_body_is_refused_or_required_as_the_block_declares(block: Block) -> None:
    refused = {Body.NEVER: "{ }", Body.ALWAYS: ";", Body.EITHER: ""}[block.body]
    if not refused:
        return
    with pytest.raises(PolicyError) as told:
        parse_policy(f"{block.word} {refused}", file="x.policy")
    said = "takes no block" if block.body is Body.NEVER else "needs a block"
    assert f"`{block.word}` {said}" in {each.message for each in told.value.problems if each.code == Code.SYNTAX}
