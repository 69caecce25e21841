"""Unpacked images and environments of a machine, and the attempts that wait for one.

Each is unpacked once, by a process of the daemon's account, and is kept under the hash of its archive, which covers its
manifest: so the starter itself reads nothing that a task brings. The least recently used ones go when all take too
much; one in use stays.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from messiahs.core.model.environments import ENVIRONMENT_INPUT
from messiahs.executor.attempt_values import Staged, Start
from messiahs.executor.attempts import NEVER, Held, NotSpawned
from messiahs.executor.images.environments import Environment
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.layout import TRASH
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.sandbox.unpacking import ABOUT, ROOT, About, not_here, start_unpacking, unusable, what_of
from messiahs.executor.starter.spawn import problem_in

IMAGES: Final = "images"
CACHE_BYTES: Final = 16 << 30
"""Maximum size of all unpacked images of a module, beside the one that is being unpacked."""
LIFE_SECONDS: Final = 14 * 86_400
"""After that time an image is unpacked again: the system may remove old files from folders for temporary ones."""
_AGE_CHECK_NS: Final = 3_600_000_000_000
_NEW: Final = "new"
_REPORT_BYTES: Final = 4096
_ABSENT: Final = "the {} of the task is not among its inputs"
_OF_ENVIRONMENTS: Final = ".environment"
"""Ends the names of environments: the same bytes could be an image, too."""
_ENDED: Final = "its unpacking was killed"
_OWN: Final = frozenset(("HOME", "TMPDIR", "USER"))
_OWN_PREFIX: Final = "MESSIAHS_"


class Unpacked(NamedTuple):
    """An image or environment that is ready: its name, its folder, and the variables that a task takes from it."""

    digest: str
    root: str
    variables: tuple[tuple[str, str], ...]
    environment: Environment | None = None
    """What an environment says of itself; None: it is an image."""


class Waiting(NamedTuple):
    """An attempt that waits for its image, with its folder and logs."""

    held: Held
    taken: Taken


class Images:
    """The images below the folder of attempts (mutable).

    `_kept` has each unpacked one, the least recently used first; `_waiting` the attempts by the digest of their image.
    """

    def __init__(self, pool: Pool, *, cache_bytes: int = CACHE_BYTES, life_seconds: float = LIFE_SECONDS) -> None:
        self._pool, self._folder = pool, f"{pool.root}/{IMAGES}"
        self._cache_bytes, self._life_seconds = cache_bytes, life_seconds
        self._current = ""
        """What it unpacks; empty if nobody waits for that any more."""
        self._report = -1
        self._kept: dict[str, About] = {}
        self._users = Counter[str]()
        self._waiting: dict[str, list[Waiting]] = {}
        self._failed: list[tuple[Waiting, NotSpawned]] = []
        self._ages_checked_at = boottime_ns()
        with pool.capabilities:
            self._find()

    @staticmethod
    def is_of_environment(start: Start) -> bool:
        """Whether a task has an environment."""
        return start.archive is not None and start.archive.name == ENVIRONMENT_INPUT

    @property
    def waiting(self) -> int:
        """How many attempts wait."""
        return len(self._failed) + sum(map(len, self._waiting.values()))

    @property
    def has_ready(self) -> bool:
        """Whether an attempt need not wait any longer."""
        return bool(self._failed) or any(digest in self._kept for digest in self._waiting)

    def ask(self, held: Held, taken: Taken) -> None:
        """Let an attempt wait for its image; its logs are duplicated. Raises `OSError`."""
        assert held.start is not None
        assert held.start.archive is not None
        archive = held.start.archive
        waiting = Waiting(held, _duplicated(taken))
        if not archive.source:
            kind = what_of(archive).removeprefix("the ")
            absent = replace(unusable(archive, ""), text=_ABSENT.format(kind))
            self._failed.append((waiting, absent))
            return
        digest = _name_of(archive)
        self._drop_if_old(digest)
        self._waiting.setdefault(digest, []).append(waiting)
        self._unpack_next()

    def give_up(self, held: Held) -> bool:
        """Let an attempt wait no longer, because it is to end; return whether it did."""
        for digest, attempts in self._waiting.items():
            for waiting in attempts:
                if waiting.held is held:
                    waiting.taken.close()
                    attempts.remove(waiting)
                    if not attempts:
                        self._forget(digest)
                    return True
        return False

    def ready(self) -> Iterator[tuple[Waiting, Unpacked | NotSpawned]]:
        """Yield the attempts that wait no longer, each with its image, which is then in use, or with what is wrong."""
        failed, self._failed = self._failed, []
        yield from failed
        for digest in [digest for digest in self._waiting if digest in self._kept]:
            for waiting in self._waiting.pop(digest):
                yield waiting, self._use(digest)

    def release(self, digest: str) -> None:
        """Note that an attempt has ended that used an image."""
        self._users[digest] -= 1

    def unpacked(self) -> None:
        """Take over what the process has done, which was reaped, and start the next one."""
        self._pool.unpacker = 0
        digest, self._current = self._current, ""
        with open(self._report, "rb", buffering=0) as report:  # noqa: PTH123 - a descriptor
            content = report.read(_REPORT_BYTES)
        new = f"{self._folder}/{_NEW}"
        if digest:
            problem = problem_in(content) if content else self._keep(digest, new)
            if problem is not None:
                self._failed += ((waiting, problem) for waiting in self._waiting.pop(digest))
        self._remove(new)
        self._unpack_next()

    @property
    def due_at(self) -> int:
        """When the ages of images are to be checked again."""
        return self._ages_checked_at + _AGE_CHECK_NS if self._kept else NEVER

    def step(self, now: int) -> None:
        """Drop old images if it is time for that: some are never asked for again."""
        if now < self.due_at:
            return
        self._ages_checked_at = now
        for digest in list(self._kept):
            if digest not in self._waiting:
                self._drop_if_old(digest)

    def _unpack_next(self) -> None:
        """Start to unpack what the first attempts wait for, unless something is being unpacked."""
        digest, attempts = next((one for one in self._waiting.items() if one[0] not in self._kept), ("", []))
        if self._pool.unpacker or not digest:
            return
        start = attempts[0].held.start
        assert start is not None
        assert start.archive is not None
        new = f"{self._folder}/{_NEW}"
        try:
            os.makedirs(new, mode=0o700)  # noqa: PTH103 - strings
            self._pool.unpacker, self._report = start_unpacking(start.archive, new)
            self._current = digest
        except OSError as error:
            problem = not_here(start.archive, f"{error.strerror}")
            self._failed += ((waiting, problem) for waiting in self._waiting.pop(digest))

    def _forget(self, digest: str) -> None:
        del self._waiting[digest]
        if digest == self._current:
            # Reaped later; until then nothing else is unpacked.
            self._current = ""
            os.kill(self._pool.unpacker, signal.SIGKILL)

    def _keep(self, digest: str, new: str) -> NotSpawned | None:
        """Keep an image that was unpacked; return why it cannot be kept."""
        start = self._waiting[digest][0].held.start
        assert start is not None
        assert start.archive is not None
        about = _about(new)
        if about is None:
            return not_here(start.archive, _ENDED)
        if not self._has_room(about.size_bytes):
            full = f"those of running tasks fill the {self._cache_bytes} bytes for all images and environments"
            return not_here(start.archive, full)
        try:
            os.rename(new, f"{self._folder}/{digest}")  # noqa: PTH104 - as above
        except OSError as error:
            return not_here(start.archive, f"it cannot be kept: {error.strerror}")
        self._kept[digest] = about
        return None

    def _has_room(self, size_bytes: int) -> bool:
        """Make room for an image, and return whether there is any."""
        total = size_bytes + sum(about.size_bytes for about in self._kept.values())
        for digest, about in list(self._kept.items()):
            if total > self._cache_bytes and not self._users[digest] and digest not in self._waiting:
                self._drop(digest)
                total -= about.size_bytes
        return total <= self._cache_bytes

    def _drop(self, digest: str) -> None:
        del self._kept[digest]
        self._remove(f"{self._folder}/{digest}")

    def _drop_if_old(self, digest: str) -> None:
        if digest in self._kept and not self._users[digest] and not self._is_young(f"{self._folder}/{digest}"):
            self._drop(digest)

    def _is_young(self, folder: str) -> bool:
        """Whether an image is there, and was unpacked not long ago."""
        try:
            return time.time() - os.stat(f"{folder}/{ROOT}").st_ctime < self._life_seconds  # noqa: PTH116 - strings
        except OSError:
            return False

    def _remove(self, folder: str) -> None:
        with self._pool.capabilities, suppress(OSError):
            self._pool.dispose_of(folder)

    def _use(self, digest: str) -> Unpacked:
        about = self._kept[digest] = self._kept.pop(digest)
        self._users[digest] += 1
        folder = f"{self._folder}/{digest}"
        with suppress(OSError):
            # The order of uses outlives the starter. The kernel's own time advances in steps of some ms.
            now = time.time_ns()
            os.utime(f"{folder}/{ABOUT}", ns=(now, now))
        return Unpacked(digest, f"{folder}/{ROOT}", tuple(filter(_is_taken, about.variables)), about.environment)

    def _find(self) -> None:
        """Find the images that an earlier starter has left, and set anything else aside."""
        folder, trash = Path(self._folder), Path(self._pool.root, TRASH)
        if folder.exists() and folder.stat().st_uid != os.geteuid():
            # A starter that contains tasks in another way has another account, which is that of its tasks.
            trash.mkdir(mode=0o711, exist_ok=True)
            folder.rename(trash / f"{IMAGES}-{time.time_ns():x}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found: list[tuple[float, str, About]] = []
        for entry in folder.iterdir():
            about = _about(str(entry)) if entry.name != _NEW and self._is_young(str(entry)) else None
            if about is None:
                trash.mkdir(mode=0o711, exist_ok=True)
                entry.rename(trash / f"{IMAGES}-{entry.name}-{time.time_ns():x}")
            else:
                found.append(((entry / ABOUT).stat().st_mtime, entry.name, about))
        self._kept.update((digest, about) for _, digest, about in sorted(found, key=lambda one: one[0]))


def _about(folder: str) -> About | None:
    try:
        return msgspec.json.decode(Path(folder, ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        # Also one that an earlier release found good.
        return None


def _is_taken(variable: tuple[str, str]) -> bool:
    """Whether a task takes a variable of its image: not what tells where it runs, and as whom."""
    name, _ = variable
    return name not in _OWN and not name.startswith(_OWN_PREFIX)


def _duplicated(taken: Taken) -> Taken:
    stdin = None if taken.stdin is None else os.dup(taken.stdin)
    return Taken(taken.folder, os.dup(taken.stdout), os.dup(taken.stderr), stdin)


def _name_of(archive: Staged) -> str:
    """Return the name under which an unpacked archive is kept."""
    digest = os.path.basename(archive.source)  # noqa: PTH119 - a string
    return digest + _OF_ENVIRONMENTS if archive.name == ENVIRONMENT_INPUT else digest
