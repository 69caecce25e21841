"""Predicates with what the attributes of a task imply."""

import pytest

from messiahs.language.predicate.joining import joined

IMPLIED = "$a >= 1 and $b >= 0"


@pytest.mark.parametrize(
    ("stated", "made"),
    [
        ("", IMPLIED),
        (" \n", IMPLIED),
        ("$c > 1 or $d > 1", f"($c > 1 or $d > 1) and {IMPLIED}"),
        ("$c > 1 or", "$c > 1 or"),
        # The parentheses of such a text would change what it means.
        ("$c > 1) or ($d > 1", "$c > 1) or ($d > 1"),
        (IMPLIED, IMPLIED),
        (f"$c > 1 or {IMPLIED}", f"($c > 1 or {IMPLIED}) and {IMPLIED}"),
        (f"($c > 1) or ($d > 1) and {IMPLIED}", f"(($c > 1) or ($d > 1) and {IMPLIED}) and {IMPLIED}"),
    ],
)
def test_both_are_demanded_unless_the_stated_one_is_not_well_formed(stated: str, made: str) -> None:
    assert joined(stated, IMPLIED) == made
    assert joined(made, IMPLIED) == made


def test_what_implies_nothing_changes_nothing() -> None:
    assert joined("$c > 1", "") == "$c > 1"
    assert joined("", "") == ""
