"""The tasks of one submission: a single task, the members of an array, or one for each of some items."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from messiahs.config.array_numbers import ArrayNumbers
from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.errors import ClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """`count` is 0 for a single task; `items` are the replacements of `{}`, by default the member numbers.

    Of an array at most `at_once` members (0: all) are placed or run at the same time. Items that `are_numbers` are also
    what tasks see as their number in the array.
    """

    count: int = 0
    items: tuple[str, ...] = ()
    are_numbers: bool = False
    at_once: int = 0

    @classmethod
    def of_items(cls, items: Sequence[str]) -> Self:
        """Return one member for each item; a `ClientError` for none, and for more than a million."""
        if not items:
            raise ClientError("there is no item, so there would be no task", code=ClientError.USAGE)
        _check_count(len(items))
        return cls(count=len(items), items=tuple(items))

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Self:
        """Return one member for each number, in their order; raises as `of_items` does."""
        _check_count(len(numbers))
        if isinstance(numbers, range) and numbers.start == numbers.step == 1 and numbers:
            return cls(count=len(numbers))
        return replace(cls.of_items([str(number) for number in numbers]), are_numbers=True)

    @classmethod
    def of_array(cls, array: ArrayNumbers) -> Self:
        """Return one member for each number of an array; raises as `of_items` and `limited` do."""
        members = cls.of_numbers(array.numbers)
        return members if array.at_once is None else members.limited(array.at_once)

    def limited(self, at_once: int) -> Self:
        """Return these members, at most `at_once` of which are placed or run at the same time."""
        if not self.count or not 1 <= at_once <= MEMBER_LIMIT:
            text = f"1 to {MEMBER_LIMIT} members of an array can be allowed at once, not {at_once}"
            raise ClientError(text, code=ClientError.USAGE)
        return replace(self, at_once=at_once)

    def texts(self) -> tuple[str, ...]:
        """Return the replacement of `{}` for each member; empty for a single task."""
        return self.items or tuple(str(number) for number in range(1, self.count + 1))


def _check_count(count: int) -> None:
    if count > MEMBER_LIMIT:
        raise ClientError(f"a submission has at most {MEMBER_LIMIT} tasks, not {count}", code=ClientError.USAGE)


SINGLE: Final = Members()
"""One task that is no member of an array."""
