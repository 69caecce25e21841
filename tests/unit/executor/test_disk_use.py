"""An attempt that cannot be looked at whole is judged by what was known of it, or by what it did against that."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import Held, Phase, Table
from messiahs.executor.protocol.layout import ATTEMPTS
from messiahs.executor.starter.disk_use import DiskUse
from tests.live.disks import fill, mounted
from tests.unit.executor.apart import as_ordinary_user

pytestmark = pytest.mark.processes

_MIB = 1 << 20
_SECOND = 1_000_000_000


def _running(table: Table, root: Path) -> Held:
    """Return an attempt that runs, with its folder, and that has stated nothing."""
    start = Start(
        attempt=AttemptId(TaskId(SystemId("x"), Epoch(1), 1), 1),
        claim=ClaimId(SystemId("x"), Epoch(1), 1),
        argv=("true",),
        env=(),
        places=1,
        limit_ns=None,
        lease_until=100 * _SECOND,
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
        use = DiskUse(table, str(tmp_path), nullcontext())
        (tmp_path / ATTEMPTS / held.folder / "big").write_bytes(bytes(72 * _MIB))
        assert use.step(0) is None
        fill(tmp_path, leave_bytes=_MIB)
        with _without_descriptors():
            assert use.step(2 * _SECOND) is None
        assert use.step(4 * _SECOND) is None
        assert use.text_of(held) == ""


def test_a_task_that_keeps_its_folder_closed_is_ended_and_told_why(public: Path) -> None:
    table = Table()
    root = public / "tasks"
    held = _running(table, root)

    def act() -> None:
        # What is closed above it is not found through its descriptors.
        (root / ATTEMPTS).chmod(0)
        use = DiskUse(table, str(root), nullcontext())
        assert use.step(0) is held
        why = "one of its folders cannot be made readable"
        assert use.text_of(held) == f"the disk that the task uses cannot be measured: {why}"

    as_ordinary_user(act, public)
