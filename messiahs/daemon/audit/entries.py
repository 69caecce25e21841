"""What the audit log of decisions says: who decided what about which task, policy or member, and why."""

from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from messiahs.core.model.instants import SECOND, Instant

OF_MODULE: Final = "module"
"""The source of what the module, its files and its administrators decide about policies and members."""
OF_STRANGERS: Final = "strangers"
"""The source of what systems cause that are no neighbors."""
_SOURCE_LENGTH: Final = 120


class Kind(StrEnum):
    """What a decision is about."""

    TASK = "task"
    POLICY = "policy"
    MEMBER = "member"
    AUDIT = "audit"
    """The audit log itself: lines that were lost."""


class Caller(NamedTuple):
    """A local user, as the kernel names the account at the other end of the socket."""

    user: str
    uid: int


class Entry(NamedTuple):
    """One decision, which may be about several tasks: these are listed beside it.

    A named tuple, because equal decisions of one batch are looked up in a table for each task. `source` has caused it,
    and bears its size. `origin` and `user` are those of the tasks, `about` names a policy, a system or a token.
    `is_counted`: somebody can cause any number of them without cost.
    """

    kind: Kind
    what: str
    source: str = OF_MODULE
    by: Caller | None = None
    neighbor: str = ""
    origin: str = ""
    user: str = ""
    about: str = ""
    code: str = ""
    why: str = ""
    is_counted: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a file. With a `count`, it stands for so many decisions since `since` that have no line of their own.

    `by` and `uid` are the local user who decided, empty if the module did.
    """

    at: str
    module: str
    kind: str
    what: str
    by: str = ""
    uid: int | None = None
    neighbor: str = ""
    origin: str = ""
    user: str = ""
    tasks: tuple[str, ...] = ()
    about: str = ""
    code: str = ""
    why: str = ""
    count: int = 0
    since: str = ""


@lru_cache(1_024)
def of_neighbor(system: str) -> str:
    """Return a neighbor as a source."""
    return f"neighbor.{quote(system, safe='')}"[:_SOURCE_LENGTH]


@lru_cache(1_024)
def of_user(user: str) -> str:
    """Return a local user as a source."""
    return f"user.{quote(user, safe='')}"[:_SOURCE_LENGTH]


def time_text(instant: Instant) -> str:
    """Return an instant as RFC 3339 in UTC, to the microsecond; such texts have the order of their instants."""
    found = datetime.fromtimestamp(instant / SECOND, UTC)
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")
