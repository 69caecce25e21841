"""The disk that running attempts use, looked at a little at a time, because everything else waits meanwhile.

Attempts take turns, one piece each, so the files of one, or what its processes have mapped, do not delay the look at
another. Only a look into deep folders may have to wait for the one that is in such folders: it holds many descriptors.

Blocks count, not sizes, so holes in files cost nothing, and every file counts as a little, because a disk has a number
of them. Deleted files count as long as a process of the attempt has them open or mapped.

Once only the last twentieth of the disk is free, the next growth of any attempt ends the one that uses most, which need
not be the one that grows. Its files take a while to go, so the others may use half of that twentieth meanwhile; beyond
it, whichever grows is ended.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from messiahs.config.disk import KEPT_SHARE, free_bytes, free_files, is_last_part_reached, size_of
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.texts import printable
from messiahs.executor.attempts import NEVER, Held, Phase, Table
from messiahs.executor.linux.processes import program_of, standing_of
from messiahs.executor.protocol.layout import ATTEMPTS, SLOTS, WORK
from messiahs.executor.starter.disk_walk import Walk

_LOOK_NS: Final = 1_000_000_000
"""Maximum time between the beginnings of two looks at a running attempt, unless one look takes longer."""
_FAST_BYTES, _FAST_FILES = 1 << 30, 100_000
"""What tasks can write in a second, as is assumed here: a look begins before they could fill the disk."""
_PAUSE_NS: Final = 20_000_000
"""Time between two pieces."""
_PIECE: Final = 256
"""Files and folders of a piece."""
_OPEN_FOLDERS: Final = 128
"""Folders that looks hold open between their pieces, in equal parts, besides the one look that may hold more."""
_AT_ONCE: Final = 16_384
"""Files and folders of all attempts that are looked at when one of them must end, while everything else waits."""
_SMALL_BYTES, _SMALL_FILES = 64 << 20, 1024
"""An attempt that uses less is not ended because the disk is full..."""
_SMALL_SHARE: Final = 16
"""...nor one that uses less than one part in so many of a smaller disk."""
_HIDING_NS: Final = 5_000_000_000
"""How long a process may hide what it has open: longer than one that is about to execute its program."""
_HIDES: Final = (
    "its process `{}` hides what it has open (by PR_SET_DUMPABLE, as ssh-agent does, or as a program that can be "
    "executed and not read), which a box of bubblewrap does not allow"
)
_MIB: Final = 1 << 20
_OWN: Final = "its limit of {}: raise it with --disk SIZE"
_OF_SITE: Final = "this machine gives to one that states nothing, {}: state what it needs with --disk SIZE"


@dataclass(slots=True)
class _Look:
    """The looks at one attempt (mutable)."""

    due: int
    begun: int = 0
    walk: Walk | None = None
    """The present one; None between two."""
    is_deep: bool = False
    """Whether it is the one look that may hold more folders open than its part, or waits to be that."""
    hiding: dict[tuple[bytes, int], int] = field(default_factory=dict)
    """Processes that hid what they have open, by their numbers and starts, and when each was first seen to."""


class DiskUse:
    """What each running attempt used when it was last looked at (mutable)."""

    def __init__(
        self,
        table: Table,
        root: str,
        capabilities: AbstractContextManager[object],
        processes: Callable[[Held], Iterable[bytes]],
        *,
        must_show: bool = False,
    ) -> None:
        """Find the files that have no name by the processes of an attempt; each of them `must_show` what it has open.

        Otherwise what a process hides does not count.
        """
        self._table, self._root, self._capabilities, self._processes = table, root, capabilities, processes
        self._must_show = must_show
        self._due = self._begun = 0
        self._looks: dict[AttemptId, _Look] = {}
        self._round: list[Held] = []
        """Attempts of which a piece is due in the present round; the last one is next."""
        self._used: dict[AttemptId, tuple[int, int]] = {}
        """Bytes and files."""
        self._texts: dict[AttemptId, str] = {}
        self._is_relieved = False
        """Whether an attempt was ended for its last twentieth, and the disk has had no more room since."""

    @property
    def due_at(self) -> int:
        """When the next piece is due."""
        return self._due if self._table.claims else NEVER

    def step(self, now: int) -> Held | None:
        """Look at a piece of the files of one attempt; return an attempt that must end, if there is one."""
        if now < self.due_at:
            return None
        if not self._round:
            self._begin_round(now)
        if not self._round:
            return None
        held = self._round.pop()
        look = self._looks[held.attempt]
        self._due = now + _PAUSE_NS
        with self._capabilities:
            walk = self._go_on(held, look)
        if walk is not None:
            walk.close()
            if self._must_show:
                _note_hiding(look, walk, now)
            look.walk, look.is_deep, look.due = None, False, look.begun + self._longest_pause_ns()
        if not self._round:
            self._due = max(self._due, self._next_look(now))
        return None if walk is None else self._to_end(held, walk)

    def text_of(self, held: Held) -> str:
        """Return why an attempt was ended, and forget it."""
        self._used.pop(held.attempt, None)
        return self._texts.pop(held.attempt, "")

    def _begin_round(self, now: int) -> None:
        running = [held for held in self._table.attempts.values() if held.phase is Phase.RUNNING]
        before = self._looks
        self._looks = {held.attempt: before.pop(held.attempt, _Look(due=now)) for held in running}
        for look in before.values():
            if look.walk is not None:
                look.walk.close()
        self._round = [held for held in running if self._looks[held.attempt].due <= now]
        self._begun, self._due = now, self._next_look(now)

    def _next_look(self, now: int) -> int:
        """Return when a piece of an attempt is due next; those that begin to run meanwhile are found after a while."""
        if not self._looks:
            # A task that starts meanwhile can write as fast as one that runs.
            return now + max(_PAUSE_NS, self._longest_pause_ns())
        return min(now + _LOOK_NS, *(look.due for look in self._looks.values()))

    def _go_on(self, held: Held, look: _Look) -> Walk | None:
        """Look at the next piece; return the walk if its attempt can be judged: at its end, or above the limit."""
        if look.walk is None:
            if look.is_deep and self._has_deep_walk():
                return None
            look.walk = Walk(*self._folders_of(held), processes=self._processes(held))
            look.begun = self._begun
        walk = look.walk
        if walk.go_on(_PIECE) or _is_above(held, walk):
            return walk
        is_deep = walk.open_folders > max(1, _OPEN_FOLDERS // len(self._looks))
        if is_deep and not look.is_deep and self._has_deep_walk():
            # It begins anew when it may hold them.
            walk.close()
            look.walk = None
        look.is_deep = is_deep
        return None

    def _has_deep_walk(self) -> bool:
        return any(look.is_deep and look.walk is not None for look in self._looks.values())

    def _to_end(self, held: Held, walk: Walk) -> Held | None:
        """Judge an attempt by all of its files, unless it ends already; it may be another one that has to end."""
        if not _is_going_on(held) or held.start is None:
            return None
        before = self._used.get(held.attempt, (0, 0))
        if not walk.missed:
            self._used[held.attempt] = walk.used_bytes, walk.files
        if walk.problem:
            self._texts[held.attempt] = f"the disk that the task uses cannot be measured: {walk.problem}"
        elif _is_above(held, walk):
            limit = f"{(held.start.limits.disk_bytes or 0) / _MIB:.1f} MiB"
            text = _OF_SITE if "disk" in held.start.limits.of_site else _OWN
            used = f"{walk.used_bytes / _MIB:.1f} MiB of disk"
            self._texts[held.attempt] = f"the task used {used} in {walk.files} files, more than {text.format(limit)}"
        else:
            return self._to_end_for_room(held, before, (walk.used_bytes, walk.files))
        return held

    def _to_end_for_room(self, held: Held, before: tuple[int, int], used: tuple[int, int]) -> Held | None:
        """Return the attempt that must end because this one grows and too little of the disk is left."""
        lacks_bytes, lacks_files = self._lacks()
        small_bytes, small_files = self._small()
        if lacks_bytes and used[0] > max(before[0], small_bytes):
            ending, used = self._largest(held, used, 0)
            text = f"the task used {used[0] / _MIB:.1f} MiB of disk, {{}}and the last twentieth of it is not for tasks"
        elif lacks_files and used[1] > max(before[1], small_files):
            ending, used = self._largest(held, used, 1)
            text = (
                f"the task has {used[1]} files, {{}}and the last twentieth of what its disk can have is not for tasks"
            )
        else:
            return None
        self._texts[ending.attempt] = text.format("" if ending is held else "more than any other task here, ")
        self._is_relieved = True
        return ending

    def _largest(self, held: Held, used: tuple[int, int], kind: int, /) -> tuple[Held, tuple[int, int]]:
        """Return the attempt that uses most bytes (0) or files (1), and what it uses; `held` if one has ended."""
        if self._is_relieved:
            return held, used
        with self._capabilities:
            self._look_again(held)
        others = (other for other in self._table.attempts.values() if other is not held and _is_going_on(other))
        known = [(other, self._used[other.attempt]) for other in others if other.attempt in self._used]
        return max(((held, used), *known), key=lambda one: (one[1][kind], one[0].folder))

    def _look_again(self, held: Held) -> None:
        """Look at all other attempts at once: what was known of them may be older than what fills the disk."""
        others = [other for other in self._table.attempts.values() if other is not held and _is_going_on(other)]
        for other in others:
            walk = Walk(*self._folders_of(other), processes=self._processes(other))
            walk.go_on(max(1, _AT_ONCE // len(others)))
            walk.close()
            if not walk.missed:
                known = self._used.get(other.attempt, (0, 0))
                self._used[other.attempt] = max(known[0], walk.used_bytes), max(known[1], walk.files)

    def _lacks(self) -> tuple[bool, bool]:
        """Return whether the disk lacks room, of bytes and of files."""
        try:
            lacks = is_last_part_reached(self._root)
            self._is_relieved = self._is_relieved and any(lacks)
            return is_last_part_reached(self._root, share=2 * KEPT_SHARE) if self._is_relieved else lacks
        except OSError:
            return False, False

    def _small(self) -> tuple[int, int]:
        """Return the bytes and the files up to which an attempt is not ended because the disk is full."""
        try:
            size_bytes, files = size_of(self._root)
        except OSError:
            return _SMALL_BYTES, _SMALL_FILES
        small_files = min(_SMALL_FILES, files // _SMALL_SHARE) if files else _SMALL_FILES
        return min(_SMALL_BYTES, size_bytes // _SMALL_SHARE), small_files

    def _longest_pause_ns(self) -> int:
        """Return how long it takes at least until the last twentieth of the disk is reached, up to `_LOOK_NS`."""
        try:
            room, files = free_bytes(self._root), free_files(self._root)
        except OSError:
            return _LOOK_NS
        until_files = _LOOK_NS if files is None else files * _LOOK_NS // _FAST_FILES
        return min(_LOOK_NS, room * _LOOK_NS // _FAST_BYTES, until_files)

    def _folders_of(self, held: Held) -> tuple[str, ...]:
        """Return the folder of the attempt, with its logs and (without a sandbox) its work, and that of its sandbox."""
        folder = f"{self._root}/{ATTEMPTS}/{held.folder}"
        return (folder, f"{self._root}/{SLOTS}/{held.slot}/{WORK}") if held.slot >= 0 else (folder,)


def _is_going_on(held: Held) -> bool:
    return held.phase is Phase.RUNNING and not held.cause


def _is_above(held: Held, walk: Walk) -> bool:
    """Whether what was counted so far is more than the limit of an attempt."""
    limit_bytes = held.start.limits.disk_bytes if held.start is not None else None
    return limit_bytes is not None and walk.used_bytes > limit_bytes


def _note_hiding(look: _Look, walk: Walk, now: int) -> None:
    """Make it a problem of a walk if a process has hidden what it has open for long."""
    standings = ((name, standing_of(name)) for name in walk.hiding)
    hiding = [(name, standing.started) for name, standing in standings if standing is not None]
    look.hiding = {each: look.hiding.get(each, now) for each in hiding}
    name = next((name for (name, _), since in look.hiding.items() if now - since >= _HIDING_NS), None)
    if name is not None:
        walk.problem = walk.problem or _HIDES.format(printable(program_of(name)))
