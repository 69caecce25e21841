"""A cache that is bounded by the bytes of its entries, not by their number."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

_LEAST_BYTES = 64
"""Minimum size of an entry: an entry takes memory of its own."""

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


def cached_by_bytes(
    function: Callable[[Question], Answer], *, limit_bytes: int, size: Callable[[Question, Answer], int]
) -> Callable[[Question], Answer]:
    """Wrap a function with a cache of at most `limit_bytes` that drops the least recently used entries.

    `size` gives the bytes of an entry. Errors are not cached.
    """
    kept: OrderedDict[Question, Answer] = OrderedDict()
    used_bytes = 0

    def ask(question: Question) -> Answer:
        nonlocal used_bytes
        try:
            answer = kept[question]
        except KeyError:
            answer = function(question)
            kept[question] = answer
            used_bytes += max(_LEAST_BYTES, size(question, answer))
            while used_bytes > limit_bytes:
                oldest, dropped = kept.popitem(last=False)
                used_bytes -= max(_LEAST_BYTES, size(oldest, dropped))
            return answer
        kept.move_to_end(question)
        return answer

    return ask
