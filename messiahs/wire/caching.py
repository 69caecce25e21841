"""Results that are kept as long as they fit into so many bytes together, however many they are."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

_LEAST_BYTES = 64
"""What a small entry counts: keeping it takes memory of its own."""

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


def cached_by_bytes(
    function: Callable[[Question], Answer], *, limit_bytes: int, size: Callable[[Question, Answer], int]
) -> Callable[[Question], Answer]:
    """Give a function that remembers what another one gave, and forgets what was not asked for longest.

    `size` says how many bytes an answer counts. An error is not remembered.
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
