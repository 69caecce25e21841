"""What other systems may move through a module: streams, bytes in a second, bytes in a day."""

import threading
from pathlib import Path

import pytest

from messiahs.config.settings import ByteSettings
from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.budgets import BudgetError, Budgets, Moved
from tests.waiting import PATIENCE_SECONDS

GATE, CHEM, PHYS = SystemId("gate"), SystemId("chem"), SystemId("phys")


class Wall:
    """A wall clock that a test sets (mutable)."""

    seconds = 1_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def budgets(tmp_path: Path, wall: Wall | None = None, **limits: int) -> Budgets:
    settings = ByteSettings(**limits)
    return Budgets(settings, own=GATE, file=tmp_path / "moved.json", wall_clock=wall or Wall())


def test_more_streams_than_allowed_are_refused_until_one_ends(tmp_path: Path) -> None:
    made = budgets(tmp_path, streams=2)
    first, _ = made.open(CHEM, Moved.SENT), made.open(CHEM, Moved.SENT)
    with pytest.raises(BudgetError, match="gate: chem has 2 streams of files open, as many as it may") as error:
        made.open(CHEM, Moved.SENT)
    assert error.value.is_brief
    made.open(PHYS, Moved.SENT)
    first.close()
    first.close()
    made.open(CHEM, Moved.SENT)
    with pytest.raises(BudgetError):
        made.open(CHEM, Moved.SENT)


def test_streams_that_follow_running_tasks_keep_no_files_from_moving(tmp_path: Path) -> None:
    made = budgets(tmp_path, streams=1)
    followed = made.open(CHEM, Moved.SENT, follows=True)
    made.open(CHEM, Moved.SENT)
    with pytest.raises(BudgetError, match="gate: chem has 1 streams of running tasks open, as many as it may"):
        made.open(CHEM, Moved.SENT, follows=True)
    followed.close()
    made.open(CHEM, Moved.SENT, follows=True)


def test_bytes_of_a_day_are_refused_beyond_the_bound_and_allowed_on_the_next(tmp_path: Path) -> None:
    wall = Wall()
    made = budgets(tmp_path, wall, daily_bytes=1_000)
    stream = made.open(CHEM, Moved.SENT)
    stream.announce(1_000)
    stream.count(600)
    with pytest.raises(BudgetError, match=r"gate: chem may move 1kB in a day, and has moved 0\.6kB") as error:
        made.open(CHEM, Moved.SENT).announce(500)
    assert not error.value.is_brief
    with pytest.raises(BudgetError):
        stream.count(401)
    made.open(PHYS, Moved.SENT).announce(1_000)
    wall.seconds += 86_400
    stream.count(1_000)


def test_bytes_of_a_day_are_known_after_a_restart(tmp_path: Path) -> None:
    stream = budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT)
    stream.count(900)
    stream.close()
    with pytest.raises(BudgetError, match=r"has moved 0\.9kB"):
        budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT).announce(101)


@pytest.mark.parametrize("content", ["", "[]", '{"chem": 5}', '{"chem": ["x", 1]}', "\0"])
def test_a_damaged_file_of_the_day_begins_a_new_day(tmp_path: Path, content: str) -> None:
    (tmp_path / "moved.json").write_text(content)
    assert budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT).count(1_000) == 0


def test_a_rate_is_shared_by_the_streams_of_a_system(tmp_path: Path) -> None:
    made = budgets(tmp_path, rate_bytes=1 << 20)
    one, other = made.open(CHEM, Moved.SENT), made.open(CHEM, Moved.SENT)
    assert 9.9 < one.count(10 << 20) <= 10
    assert 19.8 < other.count(10 << 20) <= 20
    assert made.open(PHYS, Moved.SENT).count(1 << 20) <= 1
    assert (one.piece_bytes, budgets(tmp_path).open(CHEM, Moved.SENT).piece_bytes) == (64 << 10, None)


def test_a_stream_that_is_closed_waits_no_longer(tmp_path: Path) -> None:
    stream = budgets(tmp_path, rate_bytes=1 << 20).open(CHEM, Moved.SENT)
    waiting = threading.Thread(target=stream.wait_for, args=(1 << 50,), daemon=True)
    waiting.start()
    stream.close()
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()
