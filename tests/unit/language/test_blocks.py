"""A block of policy files declares its syntax in one place, so a new one changes few files."""

import ast
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.syntax.blocks import BLOCKS, Block, Body
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import KEYWORDS, tokens_in

MESSIAHS = Path(__file__).parents[3] / "messiahs"
LANGUAGE = MESSIAHS / "language"
ROOMS = (LANGUAGE, MESSIAHS / "cli" / "policy")
MOST_FILES = 6
OTHERWISE_NAMED = {
    "accept": ("acceptance",),
    "advertise": ("disclosing",),
    "combine": ("disclosing",),
    "reveal": ("disclosing",),
    "rank": ("ranks", "candidate_ranking", "task_ranking", "part_keys"),
}
"""Modules of a block that do not begin with its word."""
EXCEPTIONS = {
    "policy": (12, "the word of the whole file, which tests of policies name too"),
    "group": (8, "predicates ask for members, and parentheses in them have the same name"),
    "let": (11, "it names a predicate, so the language of predicates knows it"),
    "advertise": (8, "with `combine` and `reveal` it is one decision of the core, compiled in `disclosing`"),
    "combine": (8, "as `advertise`"),
    "reveal": (10, "as `advertise`, and a file may have several such blocks, which the draft collects"),
    "accept": (13, "`policy explain` and the judgement of pools ask whether a task is accepted"),
    "rank": (
        15,
        "it orders instead of admitting: its explanation has its own form, and its keys are read over classes",
    ),
    "limits": (10, "modules about limits of the protocol and of predicates have the same name"),
    "running": (11, "its rules act as time passes, so a test follows a task; several such blocks are checked together"),
}
"""Blocks that touch more files, with their number, which does not grow, and the reason."""


def _files_naming(word: str) -> list[str]:
    """Return the files that a block touches: its own, those that import them, and those with its word in the code.

    Prose and messages are not counted, nor is a decision under the name that the core has for it (`admission`).
    """
    files = sorted(path for room in ROOMS for path in room.rglob("*") if path.suffix in {".py", ".lark"})
    return [str(path.relative_to(MESSIAHS)) for path in files if _names(path, word)]


def _names(path: Path, word: str) -> bool:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".lark":
        return re.search(rf"\b{word.upper()}\b", text) is not None
    nodes = list(ast.walk(ast.parse(text)))
    imported = [(node.module or "").rpartition(".")[2] for node in nodes if isinstance(node, ast.ImportFrom)]
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant) and id(node) not in prose]
    return any(_is_of(module, word) for module in (path.stem, *imported)) or any(
        text.lower() == word or f"`{word}`" in text for text in texts
    )


def _is_of(module: str, word: str) -> bool:
    return module == word or module.startswith(f"{word}_") or module in OTHERWISE_NAMED.get(word, ())


@pytest.mark.parametrize("word", BLOCKS)
def test_a_block_touches_at_most_six_files(word: str) -> None:
    most, _ = EXCEPTIONS.get(word, (MOST_FILES, ""))
    files = _files_naming(word)
    assert len(files) <= most, files


def test_a_block_with_rules_has_one_file_each_for_its_rules_explanation_and_expectations() -> None:
    assert _files_naming("allocate") == [
        "language/compiler/allocate.py",
        "language/syntax/blocks.py",
        "language/syntax/grammar.lark",
    ]
    for word in ("join", "migrate"):
        assert _files_naming(word) == [
            f"language/compiler/{word}.py",
            f"language/explaining/{word}.py",
            f"language/policytest/{word}_expectations.py",
            f"language/runtime/{word}_rules.py",
            "language/syntax/blocks.py",
            "language/syntax/grammar.lark",
        ]


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_the_parts_that_a_block_names_are_there(block: Block) -> None:
    named = {
        "compiler": (block.reader, block.check),
        "explaining": (block.explainer,),
        "policytest": (block.expectations,),
    }
    for room, names in named.items():
        for name in filter(None, names):
            assert resolve_name(f"messiahs.language.{room}.{name}")


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_the_words_of_a_block_are_words_of_the_language_and_of_its_grammar(block: Block) -> None:
    declared = (LANGUAGE / "syntax" / "grammar.lark").read_text(encoding="utf-8")
    for word in (block.word, *block.words.split()):
        assert word in KEYWORDS
        (token,) = tokens_in(Notebook(file="x", text=word))
        assert token.type == word.upper()
        assert re.search(rf"\b{word.upper()}\b", declared)
    for name in block.names.split():
        (token,) = tokens_in(Notebook(file="x", text=name))
        assert token.type == "NAME"
        assert re.search(rf"\b{name.upper()}\b", declared)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_body_is_refused_or_required_as_the_block_declares(block: Block) -> None:
    refused = {Body.NEVER: "{ }", Body.ALWAYS: ";", Body.EITHER: ""}[block.body]
    if not refused:
        return
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"{block.word} {refused}", file="x.policy")
    said = "takes no block" if block.body is Body.NEVER else "needs a block"
    assert f"`{block.word}` {said}" in {each.message for each in caught.value.problems if each.code == Code.SYNTAX}
