"""The tasks of one submission: a single task, the members of an array, or one for each of some items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.errors import ClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """`count` is 0 for a single task; `items` are the replacements of `{}`, by default the member numbers."""

    count: int = 0
    items: tuple[str, ...] = ()

    @classmethod
    def of_items(cls, items: Sequence[str]) -> Self:
        """Return one member for each item; a `ClientError` for none, and for more than a million."""
        if not items:
            raise ClientError("there is no item, so there would be no task", code=ClientError.USAGE)
        _check_count(len(items))
        return cls(count=len(items), items=tuple(items))

    @classmethod
    def numbered(cls, low: int, high: int) -> Self:
        """Return one member for each number of a range; a `ClientError` for more than a million."""
        _check_count(high - low + 1)
        return cls(count=high) if low == 1 else cls.of_items([str(number) for number in range(low, high + 1)])

    def texts(self) -> tuple[str, ...]:
        """Return the replacement of `{}` for each member; empty for a single task."""
        return self.items or tuple(str(number) for number in range(1, self.count + 1))


def _check_count(count: int) -> None:
    if count > MEMBER_LIMIT:
        raise ClientError(f"a submission has at most {MEMBER_LIMIT} tasks, not {count}", code=ClientError.USAGE)


SINGLE: Final = Members()
"""One task that is no member of an array."""
