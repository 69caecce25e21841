"""Names of the local users of a module. Not in the papers.

The system may ask a directory service (LDAP, sssd), which may answer late or never. So a thread asks while the event
loop goes on, and the answer is kept for a while.
"""

import asyncio
import errno
import pwd
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

KEPT_SECONDS: Final = 60.0
"""An account that was renamed has its new name after this time."""
_ABSENT_SECONDS: Final = 5.0
"""The same for an account that did not exist."""
_NAMES: Final = 1_024
_ACCOUNTS: Final = Path("/etc/passwd")
_SPARE_FILES: Final = 8
"""More files than a look-up of an account opens."""


class _Kept(NamedTuple):
    name: str
    until: float


def account_of(uid: int) -> str | None:
    """Return the name of an account, None if there is none; `OSError` if accounts cannot be read now."""
    name = _found(uid)
    if name is None:
        # The same is returned when this process can open no more files.
        with suppress(FileNotFoundError), ExitStack() as spare:
            for _ in range(_SPARE_FILES):
                spare.enter_context(_ACCOUNTS.open())
        name = _found(uid)
    return name


class UserNames:
    """The names of users who asked for something last (mutable). Belongs to the event loop."""

    def __init__(
        self, look_up: Callable[[int], str | None] = account_of, *, kept_seconds: float = KEPT_SECONDS
    ) -> None:
        """Look names up with a function that is called in threads."""
        self._look_up, self._kept_seconds = look_up, kept_seconds
        self._kept: dict[int, _Kept] = {}
        self._asked: dict[int, asyncio.Future[str]] = {}

    async def name_of(self, uid: int) -> str:
        """Return the name of an account, `uid-N` without one; `OSError` if accounts cannot be read now.

        A name that is kept is returned without a wait. All who wait for one name share one thread.
        """
        loop = asyncio.get_running_loop()
        kept = self._kept.get(uid)
        if kept is not None and loop.time() < kept.until:
            return kept.name
        if uid not in self._asked:
            # The end of this process does not wait for it, as it would for a pool of threads.
            thread = Thread(target=self._ask, args=(uid, loop), name=f"name of uid {uid}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise OSError(errno.EAGAIN, str(error), thread.name) from error
            self._asked[uid] = loop.create_future()
        # One who does not wait any longer leaves it to the others.
        return await asyncio.shield(self._asked[uid])

    def _ask(self, uid: int, loop: asyncio.AbstractEventLoop) -> None:
        found: str | OSError | None
        try:
            found = self._look_up(uid)
        except OSError as error:
            found = error
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._settle, uid, found)

    def _settle(self, uid: int, found: str | OSError | None) -> None:
        asked = self._asked.pop(uid)
        if isinstance(found, OSError):
            asked.set_exception(found)
            # Nobody may wait for it any more.
            asked.exception()
            return
        name, seconds = (f"uid-{uid}", _ABSENT_SECONDS) if found is None else (found, self._kept_seconds)
        self._kept.pop(uid, None)
        self._kept[uid] = _Kept(name, asyncio.get_running_loop().time() + min(seconds, self._kept_seconds))
        if len(self._kept) > _NAMES:
            del self._kept[next(iter(self._kept))]
        asked.set_result(name)


def _found(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
