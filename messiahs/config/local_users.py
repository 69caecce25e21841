"""Which accounts of its host may use a module (MESSIAHS 4.2: an administrator decides who uses a system)."""

import re
from typing import Final

EVERYONE: Final = "everyone"
OWNER: Final = "owner"
_GROUP: Final = re.compile(r"group:(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?)")
_FIRST_PERSON: Final = 1000
"""The lowest uid of a person; lower ones are root's and those of services (`UID_MIN` of login.defs)."""
FORMS: Final = "`everyone`, `owner` (its own account alone), or `group:NAME`"


def is_users(text: str) -> bool:
    """Return whether a text says who may use a module."""
    return text in (EVERYONE, OWNER) or _GROUP.fullmatch(text) is not None


def group_in(users: str) -> str | None:
    """Return the group that may use a module; None if a group does not decide."""
    found = _GROUP.fullmatch(users)
    return found["name"] if found is not None else None


def users_for(users: str, uid: int) -> str:
    """Return who may use a module that runs as `uid`, also if `users` is empty, because its topology does not say.

    Root and accounts of services serve everyone. A person's module serves that person alone: its tasks run as that
    person, who would answer for those of others.
    """
    return users or (EVERYONE if uid < _FIRST_PERSON else OWNER)
