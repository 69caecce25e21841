"""Who can reach the local API: owner, group and mode of its socket, and the accounts of tasks, which never can.

The kernel checks owner and mode when a client connects, and identifies its account.
"""

import grp
import os
import socket
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.local_users import EVERYONE, OWNER, group_in, users_for
from messiahs.config.settings import DEFAULT_TASK_UIDS, ModuleSettings
from messiahs.errors import MessiahsError
from messiahs.executor.linux.local_accounts import uid_of_release_1

_EVERYONE: Final = 0o666
_GROUP: Final = 0o660
_OWNER: Final = 0o600
_FOLDER: Final = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketAccess:
    """The place of a module's socket, who may connect (see `users_for`), and the uids of tasks, who never may.

    `link` is in the state directory and leads to the socket, for an installation whose users cannot enter that
    directory; None: the socket itself is there.
    """

    path: Path
    users: str = EVERYONE
    link: Path | None = None
    task_uids: Container[int] = ()

    def have_folder(self) -> None:
        """Make the folder of a socket elsewhere, which every account can enter. Raises `OSError`.

        It must be there before a starter is: tasks of the module's own account do not see it, if it is there.
        """
        if self.link is not None:
            # A process with another umask would close it.
            for folder in (self.path.parent.parent, self.path.parent):
                with suppress(FileExistsError):
                    folder.mkdir()
                    folder.chmod(_FOLDER)

    def bound(self) -> socket.socket:
        """Return a socket that is in its place, open to its users, and replaces the one of an earlier process.

        Makes its folder. Raises `MessiahsError` for a group that cannot have it, and `OSError`.
        """
        self.have_folder()
        # Nobody finds it closed, or gone, in between.
        new = self.path.with_suffix(".new")
        new.unlink(missing_ok=True)
        plug = socket.socket(socket.AF_UNIX)
        try:
            plug.bind(str(new))
            self._open(new)
            new.replace(self.path)
            if self.link is not None:
                self.link.unlink(missing_ok=True)
                self.link.symlink_to(self.path)
        except BaseException:
            plug.close()
            new.unlink(missing_ok=True)
            raise
        return plug

    def close(self) -> None:
        """Remove the link to a socket elsewhere, and a socket that its owner alone may use.

        Other accounts cannot see the state of the module, and know by its socket that it exists and does not run.
        """
        if self.link is not None:
            self.link.unlink(missing_ok=True)
        elif self.users == OWNER:
            self.path.unlink(missing_ok=True)

    def _open(self, new: Path) -> None:
        group = group_in(self.users)
        if group is not None:
            self._give_to(group, new)
        new.chmod({EVERYONE: _EVERYONE}.get(self.users, _OWNER if group is None else _GROUP))

    def _give_to(self, group: str, new: Path) -> None:
        try:
            os.chown(new, -1, grp.getgrnam(group).gr_gid)
        except KeyError:
            raise MessiahsError(f"`users: group:{group}`: this host has no group {group}") from None
        except PermissionError:
            text = f"`users: group:{group}`: the account of this module is not in that group"
            raise MessiahsError(f"{text}, so it cannot open the module to it") from None


def access_of(settings: ModuleSettings) -> SocketAccess:
    """Return who can reach the local API of a module that runs as the account of this process."""
    uid = os.geteuid()
    return SocketAccess(
        path=settings.users_socket,
        users=users_for(settings.users, uid),
        link=settings.socket if settings.users_socket != settings.socket else None,
        task_uids=_task_uids(settings) - {uid},
    )


def _task_uids(settings: ModuleSettings) -> frozenset[int]:
    """Return all accounts that tasks of modules of root may have on this host, in sandboxes or not.

    They are users of no module, whoever runs it: the number that one task has is later that of another one. Tasks of
    other modules count, also where this one has no machine, and those of a starter of release 0.1.0 that has not ended
    yet.
    """
    ranges = (DEFAULT_TASK_UIDS, settings.task_uids or DEFAULT_TASK_UIDS)
    uids = {uid for first, last in ranges for uid in range(first, last + 1)}
    former = uid_of_release_1()
    return frozenset(uids if former is None else {*uids, former})
