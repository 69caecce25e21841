"""Kinds of tests: a quick one starts no process, and laws are tried with the examples that the profile grants."""

import os
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import settings

from tests.property.budget import examples


@pytest.mark.parametrize("start", [lambda: subprocess.run(["true"], check=True), os.fork, lambda: os.system("true")])
def test_a_quick_test_that_starts_a_process_fails(start: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"pytest\.mark\.processes"):
        start()


def test_the_full_profile_tries_a_law_with_all_its_examples_and_the_quick_one_with_a_fifth() -> None:
    full, quick = settings.get_profile("full"), settings.get_profile("quick")
    assert (full.max_examples, quick.max_examples) == (100, 20)
    assert (full.deadline, quick.deadline) == (None, None)
    assert examples(1_000).max_examples == 10 * settings().max_examples
