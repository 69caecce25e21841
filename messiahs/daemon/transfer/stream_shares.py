"""Which of the streams of running tasks that one neighbor has open gives way, so that another user has one, too."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from messiahs.core.model.ids import SystemId

_Stream = TypeVar("_Stream")


class Kind(Enum):
    """What a stream of a running task is for."""

    FOLLOWER = auto()
    """It shows what a task writes."""
    INPUT = auto()
    """It brings standard input, or what is typed into a terminal."""
    CONNECTION = auto()
    """It is passed on unread, and may carry streams of several users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Whose a stream is: of the user of its task, as the task's claim names the user's module and account."""

    origin: SystemId | None
    user: str
    kind: Kind


def giving_way(held: Mapping[_Stream, Share], /, *, to: Share) -> _Stream | None:
    """Return the stream that ends so that a new one can begin, of those held, oldest first; None if the new one waits.

    The user who holds most gives way, with followers first, to one who then holds no more than that user. Followers
    give way to standard input already if that user held fewer before, and those of the same user always. So no two
    streams end each other in turn. Connections are never ended.
    """
    counts = Counter(_holder(one) for one in held.values())
    own = counts[_holder(to)]

    def gives_way(one: Share) -> bool:
        count = counts[_holder(one)]
        if one.kind is Kind.FOLLOWER and to.kind is not Kind.FOLLOWER:
            return _holder(one) == _holder(to) or count > own
        return one.kind is not Kind.CONNECTION and count > own + 1

    candidates = [stream for stream, one in held.items() if gives_way(one)]
    # Of several that are equal, `max` returns the first.
    rank = {stream: (counts[_holder(held[stream])], held[stream].kind is Kind.FOLLOWER) for stream in candidates}
    return max(candidates, key=rank.__getitem__, default=None)


def _holder(share: Share) -> tuple[SystemId | None, str]:
    return share.origin, share.user
