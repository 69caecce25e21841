"""Every promise on the page about security names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
_NAMED = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")


def promises() -> list[str]:
    """Return the rows of the tables of promises."""
    text = PAGE.read_text(encoding="utf-8").partition("## What is promised")[2].partition("## What is not promised")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith("| promise |")]


def functions_in(file: Path) -> set[str]:
    """Return the names of the functions in a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(each, functions)}


def test_there_are_promises() -> None:
    assert len(promises()) > 20


@pytest.mark.parametrize("row", promises(), ids=lambda row: row.split("|")[1].strip()[:60])
def test_a_promise_names_a_test_that_exists(row: str) -> None:
    named = _NAMED.findall(row.split("|")[3])
    assert named, row
    for file, test in named:
        assert test in functions_in(ROOT / "tests" / file), f"{file}::{test}"
