"""The files of the audit log: one source never takes the room of another, and a failure leaves no half of a batch."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from messiahs.daemon.audit import files as audit_files
from messiahs.daemon.audit.files import DAY_BYTES, SOURCE_LIMIT, AuditFiles
from messiahs.errors import StoreError

TODAY = date(2026, 3, 1)


class Days:
    """The calendar of a test (mutable)."""

    def __init__(self) -> None:
        self.today, self.keep = TODAY, 30

    def files(self, folder: Path) -> AuditFiles:
        """Return the files of a folder in this calendar."""
        return AuditFiles(folder, keep_days=lambda: self.keep, today=lambda: self.today)


def append(files: AuditFiles, *pieces: tuple[str, bytes]) -> None:
    with files.appended(pieces):
        pass


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.glob("*/*"))}


def test_each_source_has_a_file_of_each_day_which_only_the_owner_reads(tmp_path: Path) -> None:
    days, folder = Days(), tmp_path / "audit"
    files = days.files(folder)
    append(files, ("module", b"a\n"), ("neighbor.left", b"b\n"))
    days.today += timedelta(days=1)
    append(files, ("module", b"c\n"))
    assert content(folder) == {
        "2026-03-01/module.jsonl": b"a\n",
        "2026-03-01/neighbor.left.jsonl": b"b\n",
        "2026-03-02/module.jsonl": b"c\n",
    }
    assert all(each.stat().st_mode & 0o077 == 0 for each in (folder, *folder.glob("*"), *folder.glob("*/*")))


def test_what_was_appended_is_taken_back_if_the_commit_fails(tmp_path: Path) -> None:
    files = Days().files(tmp_path)
    append(files, ("module", b"a\n"))
    with pytest.raises(StoreError, match="the commit"), files.appended([("module", b"b\n"), ("user.x", b"c\n")]):
        raise StoreError("the commit")
    append(files, ("module", b"d\n"))
    assert content(tmp_path) == {"2026-03-01/module.jsonl": b"a\nd\n", "2026-03-01/user.x.jsonl": b""}


def test_a_batch_of_more_sources_than_files_are_open_is_taken_back_whole(tmp_path: Path) -> None:
    files = Days().files(tmp_path)
    pieces = [(f"user.{number}", b"a\n") for number in range(40)]
    append(files, *pieces[:20])
    with pytest.raises(StoreError, match="the commit"), files.appended(pieces):
        raise StoreError("the commit")
    found = content(tmp_path)
    assert [found[f"2026-03-01/user.{number}.jsonl"] for number in range(40)] == [b"a\n"] * 20 + [b""] * 20


def test_a_file_that_cannot_be_written_is_an_error_of_the_store_and_leaves_nothing_half(tmp_path: Path) -> None:
    files = Days().files(tmp_path)
    append(files, ("module", b"a\n"))
    (tmp_path / "2026-03-01" / "user.x.jsonl").symlink_to("/dev/full")
    with pytest.raises(StoreError, match=r"audit log .* cannot be written"):
        append(files, ("module", b"b\n"), ("user.x", b"c\n"))
    assert (tmp_path / "2026-03-01" / "module.jsonl").read_bytes() == b"a\n"


def test_a_line_that_a_crash_has_torn_is_ended_before_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "2026-03-01").mkdir()
    (tmp_path / "2026-03-01" / "module.jsonl").write_bytes(b'{"at": "tor')
    append(Days().files(tmp_path), ("module", b"next\n"))
    assert content(tmp_path)["2026-03-01/module.jsonl"] == b'{"at": "tor\nnext\n'


def test_a_file_that_somebody_has_moved_is_begun_anew(tmp_path: Path) -> None:
    files = Days().files(tmp_path)
    append(files, ("module", b"a\n"))
    (tmp_path / "2026-03-01" / "module.jsonl").unlink()
    append(files, ("module", b"b\n"))
    assert content(tmp_path)["2026-03-01/module.jsonl"] == b"b\n"


def test_the_room_of_a_day_is_that_of_one_source_and_is_known_after_a_restart(tmp_path: Path) -> None:
    days = Days()
    append(days.files(tmp_path), ("neighbor.left", b"x" * 999 + b"\n"))
    files = days.files(tmp_path)
    assert files.room_of("neighbor.left") == DAY_BYTES - 1_000
    assert files.room_of("neighbor.right") == DAY_BYTES < files.room_of("neighbor.right", is_count=True)
    days.today += timedelta(days=1)
    assert files.room_of("neighbor.left") == DAY_BYTES


def test_beyond_a_number_of_sources_the_others_share_a_file(tmp_path: Path) -> None:
    files = Days().files(tmp_path)
    append(files, *((f"user.{number}", b"a\n") for number in range(SOURCE_LIMIT + 2)))
    assert len(content(tmp_path)) == SOURCE_LIMIT + 1
    assert content(tmp_path)["2026-03-01/others.jsonl"] == b"a\na\n"


def test_days_are_kept_for_as_long_as_the_policy_says(tmp_path: Path) -> None:
    days = Days()
    files = days.files(tmp_path)
    append(files, ("module", b"old\n"))
    days.today += timedelta(days=30)
    append(files, ("module", b"kept\n"))
    assert set(content(tmp_path)) == {"2026-03-01/module.jsonl", "2026-03-31/module.jsonl"}
    days.keep = 29
    days.files(tmp_path).room_of("module")
    assert set(content(tmp_path)) == {"2026-03-31/module.jsonl"}


def test_what_others_have_put_into_an_old_day_stays_and_stops_nothing(tmp_path: Path) -> None:
    days = Days()
    append(days.files(tmp_path), ("module", b"a\n"))
    (tmp_path / "2026-03-01" / "module.jsonl.gz").write_bytes(b"z")
    days.today += timedelta(days=40)
    append(days.files(tmp_path), ("module", b"b\n"))
    assert content(tmp_path) == {"2026-03-01/module.jsonl.gz": b"z", "2026-04-10/module.jsonl": b"b\n"}


def test_beyond_the_bound_of_all_days_the_largest_source_loses_its_oldest_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_files, "TOTAL_BYTES", 100)
    days = Days()
    files = days.files(tmp_path)
    for _ in range(4):
        append(files, ("module", b"act 1234\n"), ("neighbor.flood", b"x" * 39 + b"\n"))
        days.today += timedelta(days=1)
    files.room_of("module")
    assert [name for name in content(tmp_path) if "module" in name] == [
        f"2026-03-0{day}/module.jsonl" for day in range(1, 5)
    ]
    assert [name for name in content(tmp_path) if "flood" in name] == ["2026-03-04/neighbor.flood.jsonl"]
