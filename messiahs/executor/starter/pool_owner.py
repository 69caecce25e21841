"""To whom the folders of a pool belong, if not to the account of the tasks."""

from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of the folders, if that is not the tasks' account; the starter acts as it within `capabilities`."""

    uid: int
    gid: int
    """Only this group passes through the folder of an attempt: others could run set-uid programs of tasks there."""
    capabilities: AbstractContextManager[object]
    passable: int = 0o711
    """Mode of the folders that attempts share."""
    former: int | None = None
    """The account to which release 0.1.0 gave the folders."""
