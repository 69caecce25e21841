"""Reading the audit log: all sources in the order of time, what is wanted of them, and what follows."""

from pathlib import Path

import msgspec

from messiahs.daemon.audit.entries import Line
from messiahs.daemon.audit.reading import Filter, Reading


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
    return [msgspec.json.decode(raw, type=Line).what for raw in reading.more() if raw]


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
    assert list(reading.more()) == []


def test_lines_of_a_new_day_follow_and_those_that_are_not_wanted_are_read_in_steps(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Filter(neighbor="left"))
    put(tmp_path, "module", line("01T01:00:00", "a", neighbor="left"), line("01T02:00:00", "b"))
    assert [bool(raw) for raw in reading.more()] == [True, False]
    put(tmp_path, "module", line("02T01:00:00", "c", neighbor="left"), day="2026-03-02")
    put(tmp_path, "module", line("01T23:59:59", "late", neighbor="left"))
    assert more(reading) == ["late", "c"]
    put(tmp_path, "module", line("03T01:00:00", "d", neighbor="left"), day="2026-03-03")
    assert more(reading) == ["d"]
