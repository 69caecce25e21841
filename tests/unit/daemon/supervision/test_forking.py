"""The code and data of daemons are loaded before the first of them is forked."""

import subprocess
import sys

import pytest

LOADED = """
import pytest

from messiahs.daemon.supervision.forking import load_code
from messiahs.language.predicate.parsing import predicate_grammar
before = predicate_grammar.cache_info().currsize
load_code()
print(before, predicate_grammar.cache_info().currsize)
"""


@pytest.mark.processes
def test_the_tables_of_the_predicate_language_are_made_before_daemons_are_forked() -> None:
    # In a process of its own: here others may have parsed a predicate already, and load_code freezes what is there.
    answer = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.split() == ["0", "1"]
