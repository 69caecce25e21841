"""The variable by which a task knows its number in an array."""

from collections.abc import Mapping
from typing import Final

ARRAY_INDEX: Final = "MESSIAHS_ARRAY_INDEX"
_OF_ITEM: Final = "{}"


def without_foreign_index(env: Mapping[str, str]) -> dict[str, str]:
    """Return what a submission states, except the number of another task, which may have passed all its variables on.

    The template of members whose items are their numbers stays.
    """
    return {name: value for name, value in env.items() if name != ARRAY_INDEX or value == _OF_ITEM}
