"""Generated pages match the committed ones."""

import pytest

from tests.docs.regenerate import DOCS, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_matches_the_code(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == pages()[name], "run `python tests/docs/regenerate.py`"
