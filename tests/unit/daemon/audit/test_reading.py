"""Reading the audit log: all sources in the order of time, what is wanted of them, and what follows."""

import os
from pathlib import Path

import msgspec
import pytest

from messiahs.daemon.audit.entries import Line
from messiahs.daemon.audit.reading import PIECE_BYTES, PIECE_LINES, Filter, Reading


def put(folder: Path, source: str, *lines: Line, day: str = "2026-03-01") -> None:
    (folder / day).mkdir(parents=True, exist_ok=True)
    with (folder / day / f"{source}.jsonl").open("ab") as file:
        file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)


def line(at: str, what: str = "bound", **more: object) -> Line:
    begun = {"at": f"2026-03-{at}Z", "module": "own", "kind": "task", "what": what, "origin": "own", "user": "ann"}
    return msgspec.convert({**begun, **more}, Line)


def whats(folder: Path, wanted: Filter) -> list[str]:
    return more(Reading(folder, wanted))


def more(reading: Reading) -> list[str]:
    """Return what is written until all has been read."""
    found, is_last = list[str](), False
    while not is_last:
        piece, is_last = reading.piece()
        found += whats_in(piece)
    return found


def whats_in(piece: bytes) -> list[str]:
    return [msgspec.json.decode(raw, type=Line).what for raw in piece.splitlines()]


def open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    # The folder of the descriptors is one of them, and closed afterwards.
    opened = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [str(path) for path in opened if path.is_relative_to(folder)]


def put_many(folder: Path, *, hours: int = 3, day: str = "2026-03-01") -> list[str]:
    """Write more than three pieces of lines of four sources, by turns, and return them in the order of time."""
    long, written = "x" * 1_000, list[str]()
    for source in range(4):
        lines = [
            line(f"{day[8:]}T{hour:02}:{minute:02}:{source:02}", f"{day[8:]}.{hour:02}.{minute:02}.{source}", why=long)
            for hour in range(hours)
            for minute in range(60)
        ]
        put(folder, f"source-{source}", *lines, day=day)
        written += [each.what for each in lines]
    return sorted(written)


def test_lines_of_all_sources_and_days_come_in_the_order_of_time(tmp_path: Path) -> None:
    put(tmp_path, "module", line("01T01:00:00", "a"), line("01T03:00:00", "c"))
    put(tmp_path, "neighbor.left", line("01T02:00:00", "b"))
    put(tmp_path, "module", line("02T01:00:00", "d"), day="2026-03-02")
    assert whats(tmp_path, Filter()) == ["a", "b", "c", "d"]
    assert whats(tmp_path, Filter(since="2026-03-01T03:00:00Z")) == ["c", "d"]


def test_a_task_is_found_by_its_array_its_member_and_its_attempt(tmp_path: Path) -> None:
    put(
        tmp_path,
        "module",
        line("01T01:00:00", "one", tasks=["own.1.7#2"]),
        line("01T02:00:00", "two", tasks=["own.17"]),
    )
    for name in ("own.1", "own.1.7", "own.1.7#2"):
        assert whats(tmp_path, Filter(task=name)) == ["one"]
    assert whats(tmp_path, Filter(task="own.1.7#1")) == []


def test_lines_are_chosen_by_neighbor_kind_and_user(tmp_path: Path) -> None:
    by = line("01T01:00:00", "by", kind="policy", user="", by="eve")
    put(tmp_path, "module", by, line("01T02:00:00", "of", neighbor="left", user="eve"), line("01T03:00:00", "other"))
    assert whats(tmp_path, Filter(user="eve")) == ["by", "of"]
    assert whats(tmp_path, Filter(neighbor="left")) == ["of"]
    assert whats(tmp_path, Filter(kind="policy")) == ["by"]


def test_other_users_get_what_concerns_their_own_tasks_of_this_module_alone(tmp_path: Path) -> None:
    put(
        tmp_path,
        "module",
        line("01T01:00:00", "own"),
        line("01T02:00:00", "of another user", user="eve"),
        line("01T03:00:00", "of the same name elsewhere", origin="left"),
        line("01T04:00:00", "an act", kind="policy", user="", origin="", by="ann"),
    )
    assert whats(tmp_path, Filter(own_user="ann", own="own")) == ["own"]


def test_torn_lines_are_left_out_and_what_follows_is_read_later(tmp_path: Path) -> None:
    put(tmp_path, "module", line("01T01:00:00", "a"))
    file = tmp_path / "2026-03-01" / "module.jsonl"
    with file.open("ab") as torn:
        torn.write(b'{"at": "2026-0\n')
    put(tmp_path, "module", line("01T02:00:00", "b"))
    with file.open("ab") as unfinished:
        unfinished.write(msgspec.json.encode(line("01T03:00:00", "c")))
    reading = Reading(tmp_path, Filter())
    assert more(reading) == ["a", "b"]
    with file.open("ab") as finished:
        finished.write(b"\n")
    assert more(reading) == ["c"]
    assert reading.piece() == (b"", True)


def test_lines_of_a_new_day_follow(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Filter(neighbor="left"))
    put(tmp_path, "module", line("01T01:00:00", "a", neighbor="left"), line("01T02:00:00", "b"))
    assert more(reading) == ["a"]
    put(tmp_path, "module", line("02T01:00:00", "c", neighbor="left"), day="2026-03-02")
    put(tmp_path, "module", line("01T23:59:59", "late", neighbor="left"))
    assert more(reading) == ["late", "c"]
    put(tmp_path, "module", line("03T01:00:00", "d", neighbor="left"), day="2026-03-03")
    assert more(reading) == ["d"]


def test_pieces_are_bounded_in_bytes_and_in_order_and_no_file_is_open_between_them(tmp_path: Path) -> None:
    days = ("2026-03-01", "2026-03-02", "2026-03-03")
    written = [what for day in days for what in put_many(tmp_path, day=day)]
    reading, pieces, is_last = Reading(tmp_path, Filter()), list[bytes](), False
    while not is_last:
        piece, is_last = reading.piece()
        pieces.append(piece)
        assert open_below(tmp_path) == []
    assert [what for piece in pieces for what in whats_in(piece)] == written
    longest_line = max(len(raw) for raw in pieces[0].splitlines(keepends=True))
    assert len(pieces) > 6
    assert max(map(len, pieces)) < PIECE_BYTES + longest_line


def test_lines_that_are_not_wanted_count_for_a_piece(tmp_path: Path) -> None:
    put(tmp_path, "module", line("01T02:00:00", "wanted", neighbor="left"))
    (tmp_path / "2026-03-01" / "torn.jsonl").write_bytes(b"{}\n" * PIECE_LINES)
    put(tmp_path, "long", *(line("01T01:00:00", why="x" * 1_023) for _ in range(PIECE_BYTES >> 10)))
    reading = Reading(tmp_path, Filter(neighbor="left"))
    pieces = [reading.piece() for _ in range(3)]
    assert [(whats_in(piece), is_last) for piece, is_last in pieces] == [([], False), ([], False), (["wanted"], True)]


def test_what_is_written_between_two_pieces_is_read_in_its_order(tmp_path: Path) -> None:
    written = put_many(tmp_path)
    reading = Reading(tmp_path, Filter())
    piece, is_last = reading.piece()
    found = whats_in(piece)
    assert not is_last
    put(tmp_path, "source-0", line("01T05:00:00", "grown"))
    put(tmp_path, "another", line("01T04:00:00", "new"))
    assert [*found, *more(reading)] == [*written, "new", "grown"]
    put(tmp_path, "source-0", line("01T06:00:00", "later"))
    assert more(reading) == ["later"]


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_file_that_takes_the_place_of_another_one_between_two_pieces_is_read_from_its_beginning(
    tmp_path: Path, *, is_moved: bool
) -> None:
    written = put_many(tmp_path)
    reading = Reading(tmp_path, Filter())
    piece, _ = reading.piece()
    found = whats_in(piece)
    file = tmp_path / "2026-03-01" / "source-1.jsonl"
    if is_moved:
        file.rename(file.with_suffix(".old"))
    else:
        file.unlink()
        # The next file of this folder may get the number of the one that was removed.
        (file.parent / "gap").touch()
    put(tmp_path, "source-1", line("01T05:00:00", "of the new file"))
    left = [what for what in written[len(found) :] if not what.endswith(".1")]
    assert more(reading) == [*left, "of the new file"]


def test_lines_that_were_taken_back_are_read_when_they_are_written_again(tmp_path: Path) -> None:
    put(tmp_path, "module", line("01T01:00:00", "kept"))
    file = tmp_path / "2026-03-01" / "module.jsonl"
    size = file.stat().st_size
    put(tmp_path, "module", line("01T02:00:00", "taken back"))
    reading = Reading(tmp_path, Filter())
    assert more(reading) == ["kept", "taken back"]
    os.truncate(file, size)
    assert more(reading) == []
    put(tmp_path, "module", line("01T02:00:00", "taken back"), line("01T03:00:00", "next"))
    assert more(reading) == ["taken back", "next"]
