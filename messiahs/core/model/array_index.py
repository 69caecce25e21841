"""What the members of an array differ by: the number in a variable, and the item in place of `{}`."""

from collections.abc import Mapping
from typing import Final

ARRAY_INDEX: Final = "MESSIAHS_ARRAY_INDEX"
PLACEHOLDER: Final = "{}"
"""Stands for the item of a member in its command, variables, names and places."""


def without_foreign_index(env: Mapping[str, str]) -> dict[str, str]:
    """Return what a submission states, except the number of another task, which may have passed all its variables on.

    The template of members whose items are their numbers stays.
    """
    return {name: value for name, value in env.items() if name != ARRAY_INDEX or value == PLACEHOLDER}
