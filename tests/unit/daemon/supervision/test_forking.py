"""The code and data of daemons are loaded before the first of them is forked."""

import subprocess
import sys

import pytest

LOADED = """
import gc

from messiahs.daemon.supervision.forking import load_code
from messiahs.language.predicate.parsing import predicate_grammar
from messiahs.language.syntax.parsing import policy_grammar
grammars = (predicate_grammar, policy_grammar)
print(*(each.cache_info().currsize for each in grammars))
load_code()
print(*(each.cache_info().currsize for each in grammars), gc.isenabled())
"""


@pytest.mark.processes
def test_the_tables_of_predicates_and_policies_are_made_before_daemons_are_forked() -> None:
    # In a process of its own: here others may have parsed a predicate already, and load_code freezes what is there.
    answer = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.split() == ["0", "0", "1", "1", "True"]
