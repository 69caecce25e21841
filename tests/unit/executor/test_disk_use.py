"""An attempt that cannot be looked at whole is judged by what was known of it, or by what it did against that."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.task_limits import TaskLimits
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import Held, Phase, Table
from messiahs.executor.linux.deleted_files import deleted_sizes
from messiahs.executor.protocol.layout import ATTEMPTS
from messiahs.executor.starter.disk_use import DiskUse
from tests.live.disks import fill, mounted
from tests.unit.executor.apart import as_ordinary_user

pytestmark = pytest.mark.processes

_MIB = 1 << 20
_SECOND = 1_000_000_000
_PAUSE_NS = _SECOND // 50
"""Time between two pieces."""


def _running(table: Table, root: Path, number: int = 1, *, disk_bytes: int | None = None) -> Held:
    """Return an attempt that runs, with its folder, and that has stated nothing, or its disk."""
    start = Start(
        attempt=AttemptId(TaskId(SystemId("x"), Epoch(1), number), 1),
        claim=ClaimId(SystemId("x"), Epoch(1), 1),
        argv=("true",),
        env=(),
        places=1,
        limit_ns=None,
        lease_until=100 * _SECOND,
        limits=TaskLimits(disk_bytes=disk_bytes),
    )
    held = table.queue(start)
    held.phase = Phase.RUNNING
    (root / ATTEMPTS / held.folder).mkdir(parents=True)
    return held


@contextmanager
def _without_descriptors() -> Iterator[None]:
    lowest = os.dup(0)
    os.close(lowest)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_task_has_not_grown_because_one_look_at_it_lacked_descriptors(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=96m", "tmpfs"):
        table = Table()
        held = _running(table, tmp_path)
        use = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ())
        (tmp_path / ATTEMPTS / held.folder / "big").write_bytes(bytes(72 * _MIB))
        assert use.step(0) is None
        fill(tmp_path, leave_bytes=_MIB)
        with _without_descriptors():
            assert use.step(2 * _SECOND) is None
        assert use.step(4 * _SECOND) is None
        assert use.text_of(held) == ""


@pytest.mark.parametrize(("size", "pause_ns"), [("2g", _SECOND), ("64m", _SECOND * 64 // 1024)])
def test_the_first_task_of_an_idle_machine_is_looked_at_before_it_can_fill_the_disk(
    tmp_path: Path, size: str, pause_ns: int
) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        table = Table()
        held = _running(table, tmp_path)
        held.phase = Phase.QUEUED
        use = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ())
        assert use.step(0) is None
        assert pause_ns * 9 // 10 < use.due_at <= pause_ns


def test_a_look_at_all_attempts_at_once_is_bounded_however_many_there_are(tmp_path: Path) -> None:
    own = b"%d" % os.getpid()
    each = len(list(deleted_sizes([own], ())))
    others = 16
    looked_at: list[int] = []

    def processes(held: Held) -> Iterator[bytes]:
        while held is not grows:
            looked_at.append(each)
            yield own

    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=96m", "tmpfs"):
        table = Table()
        for number in range(others):
            _running(table, tmp_path, number + 1)
        grows = _running(table, tmp_path, others + 1)
        use = DiskUse(table, str(tmp_path), nullcontext(), processes)
        (tmp_path / ATTEMPTS / grows.folder / "big").write_bytes(bytes(72 * _MIB))
        fill(tmp_path, leave_bytes=_MIB)
        assert use.step(0) is grows
    assert others * each <= sum(looked_at) < 16_384 + 2 * others * each


def test_the_largest_is_ended_for_the_last_twentieth_and_who_grows_on_for_half_of_it(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=300m", "tmpfs"):
        table = Table()
        largest, grows = _running(table, tmp_path, 1), _running(table, tmp_path, 2)
        use = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ())

        def take(held: Held, mebibytes: int) -> None:
            with (tmp_path / ATTEMPTS / held.folder / "big").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, mebibytes * _MIB)

        def looked(second: int) -> list[Held]:
            """Look at both."""
            return [held for piece in (0, 1) if (held := use.step(second * _SECOND + piece * _SECOND // 2))]

        take(largest, 120)
        take(grows, 80)
        assert looked(2) == []
        fill(tmp_path, leave_bytes=10 * _MIB)
        assert looked(4) == []
        take(grows, 81)
        assert looked(6) == [largest]
        largest.cause = Cause.DISK_LIMIT
        assert use.text_of(largest).startswith("the task used 120.0 MiB of disk, more than any other task here, and")
        take(grows, 82)
        assert looked(8) == []
        take(grows, 85)
        assert looked(10) == [grows]


def test_the_largest_is_one_that_has_grown_since_it_was_last_looked_at(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=300m", "tmpfs"):
        table = Table()
        grew, looked_at = _running(table, tmp_path, 1), _running(table, tmp_path, 2)
        use = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ())
        for second, sizes in ((2, (70, 80)), (4, (205, 81))):
            for held, mebibytes in zip((grew, looked_at), sizes, strict=True):
                with (tmp_path / ATTEMPTS / held.folder / "big").open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, mebibytes * _MIB)
            ended = [use.step(second * _SECOND + piece * _SECOND // 2) for piece in (0, 1)]
        assert ended == [grew, None]
        assert use.text_of(grew).startswith("the task used 205.0 MiB of disk, more than any other task here, and")


def _first_to_end(use: DiskUse, pieces: int) -> list[Held]:
    """Look at so many pieces; return the attempts that must end."""
    return [held for piece in range(pieces) if (held := use.step(piece * _PAUSE_NS)) is not None]


def test_the_many_files_of_one_task_do_not_delay_the_look_at_another(tmp_path: Path) -> None:
    table = Table()
    greedy, other = _running(table, tmp_path, 1, disk_bytes=_MIB), _running(table, tmp_path, 2)
    for number in range(300):
        (tmp_path / ATTEMPTS / other.folder / str(number)).touch()
    (tmp_path / ATTEMPTS / greedy.folder / "big").write_bytes(bytes(2 * _MIB))
    use = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ())
    assert _first_to_end(use, 2) == [greedy]


def test_what_processes_of_one_task_have_open_does_not_delay_the_look_at_another(tmp_path: Path) -> None:
    table = Table()
    greedy, other = _running(table, tmp_path, 1, disk_bytes=_MIB), _running(table, tmp_path, 2)
    (tmp_path / ATTEMPTS / greedy.folder / "big").write_bytes(bytes(2 * _MIB))
    opened = [os.open(tmp_path, os.O_RDONLY) for _ in range(600)]
    try:
        own = (str(os.getpid()).encode(),)
        use = DiskUse(table, str(tmp_path), nullcontext(), lambda held: own if held is other else ())
        assert _first_to_end(use, 2) == [greedy]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_looks_into_deep_folders_come_one_after_the_other_and_delay_no_others(tmp_path: Path) -> None:
    table = Table()
    greedy = _running(table, tmp_path, 1, disk_bytes=_MIB)
    deep = [_running(table, tmp_path, number, disk_bytes=300 << 12) for number in (2, 3)]
    for held in deep:
        lowest = (tmp_path / ATTEMPTS / held.folder).joinpath(*("d" * 90))
        lowest.mkdir(parents=True)
        for number in range(300):
            (lowest / str(number)).touch()
    (tmp_path / ATTEMPTS / greedy.folder / "big").write_bytes(bytes(2 * _MIB))
    use, before, most = DiskUse(table, str(tmp_path), nullcontext(), lambda _held: ()), _open_files(), 0
    ended: list[Held] = []
    for piece in range(40):
        to_end = use.step(piece * _PAUSE_NS)
        ended += [] if to_end is None else [to_end]
        most = max(most, _open_files() - before)
    assert ended == [greedy, *reversed(deep)]
    assert 2 * 90 < most < 2 * 100


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths


def test_a_task_that_keeps_its_folder_closed_is_ended_and_told_why(public: Path) -> None:
    table = Table()
    root = public / "tasks"
    held = _running(table, root)

    def act() -> None:
        # What is closed above it is not found through its descriptors.
        (root / ATTEMPTS).chmod(0)
        use = DiskUse(table, str(root), nullcontext(), lambda _held: ())
        assert use.step(0) is held
        why = "one of its folders cannot be made readable"
        assert use.text_of(held) == f"the disk that the task uses cannot be measured: {why}"

    as_ordinary_user(act, public)
