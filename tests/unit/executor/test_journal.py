"""The starter's journal: what a new starter learns from it."""

import resource
from pathlib import Path

import pytest

from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.executor.attempt_values import Ended
from messiahs.executor.starter.journal import Began, Discarded, Finished, Journal, Record, Remembered, Spawned


def attempt(number: int) -> AttemptId:
    return AttemptId(TaskId(SystemId("x"), Epoch(1), number), 1)


def written(directory: Path, *batches: list[Record]) -> None:
    journal = Journal(directory)
    journal.read()
    journal.begin_anew("boot-1", [])
    for batch in batches:
        assert journal.write(batch)
    journal.close()


def remembered(directory: Path) -> Remembered:
    journal = Journal(directory)
    try:
        return journal.read()
    finally:
        journal.close()


def test_a_first_starter_remembers_nothing(tmp_path: Path) -> None:
    assert remembered(tmp_path) == Remembered()


def test_running_ended_and_discarded_attempts_are_distinguished(tmp_path: Path) -> None:
    over = Ended(attempt=attempt(2), exit_code=3)
    spawned = Spawned(attempt=attempt(1), pid=7, started=9)
    written(
        tmp_path,
        [Began(attempt=attempt(number)) for number in (1, 2, 3, 4)],
        [spawned, Finished(ended=over), Finished(ended=Ended(attempt=attempt(3))), Discarded(attempt=attempt(3))],
    )
    found = remembered(tmp_path)
    assert found.boot_id == "boot-1"
    assert found.began == {attempt(1): spawned, attempt(4): None}
    assert found.ended == {attempt(2): over}


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_record_that_was_half_written_is_not_believed(tmp_path: Path, cut: int) -> None:
    written(tmp_path, [Began(attempt=attempt(1))], [Began(attempt=attempt(2))])
    (file,) = (file for file in tmp_path.iterdir() if file.stat().st_size)
    file.write_bytes(file.read_bytes()[:-cut])
    assert list(remembered(tmp_path).began) == [attempt(1)]


def test_a_record_with_damaged_text_is_not_believed(tmp_path: Path) -> None:
    written(tmp_path, [Began(attempt=attempt(1))], [Finished(ended=Ended(attempt=attempt(1), text="well"))])
    (file,) = (file for file in tmp_path.iterdir() if file.stat().st_size)
    file.write_bytes(file.read_bytes().replace(b"well", b"\xff\xff\xff\xff"))
    assert list(remembered(tmp_path).began) == [attempt(1)]


def test_every_run_continues_from_the_newest_file(tmp_path: Path) -> None:
    for life in range(1, 6):
        journal = Journal(tmp_path)
        before = journal.read()
        assert list(before.began) == [attempt(number) for number in range(1, life)]
        journal.begin_anew(f"boot-{life}", [Began(attempt=one) for one in before.began])
        assert journal.write([Began(attempt=attempt(life))])
        journal.close()
    assert remembered(tmp_path).boot_id == "boot-5"


def test_a_new_file_counts_only_when_it_is_complete(tmp_path: Path) -> None:
    written(tmp_path, [Began(attempt=attempt(1))])
    old = {file: file.read_bytes() for file in tmp_path.iterdir()}
    journal = Journal(tmp_path)
    journal.begin_anew("boot-2", [Began(attempt=attempt(9))] if journal.read().began else [])
    journal.close()
    newest = next(file for file, data in old.items() if not data)
    newest.write_bytes(newest.read_bytes()[:-2])
    assert list(remembered(tmp_path).began) == [attempt(1)]


def test_a_full_disk_takes_a_batch_whole_or_not_at_all(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin_anew("boot", [])
    assert journal.write([Began(attempt=attempt(1))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        assert not journal.write([Began(attempt=attempt(number)) for number in range(100, 200)])
        with pytest.raises(OSError, match=r"space|large"):
            journal.begin_anew("boot", [Began(attempt=attempt(number)) for number in range(100, 200)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert journal.write([Began(attempt=attempt(2))])
    journal.close()
    assert list(remembered(tmp_path).began) == [attempt(1), attempt(2)]


def test_a_journal_that_has_grown_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin_anew("boot", [])
    batch: list[Record] = [Finished(ended=Ended(attempt=attempt(1), text="x" * 100_000))]
    states = []
    for _ in range(43):
        states.append(journal.has_grown)
        journal.write(batch)
    journal.begin_anew("boot", [])
    states.append(journal.has_grown)
    journal.close()
    assert states == [*([False] * 42), True, False]
