"""Who supplied which file, also after the end of the record was damaged."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage import suppliers
from messiahs.daemon.storage.suppliers import Amount, Suppliers, supplier_of
from tests.waiting import eventually

FIRST, SECOND, THIRD = (bytes([number]) * 32 for number in (1, 2, 3))
SIZES = {FIRST: 1, SECOND: 20, THIRD: 300}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suppliers"


def suppliers_at(path: Path) -> Suppliers:
    return Suppliers(path, SIZES.get)


def test_suppliers_are_known_after_a_restart_and_nobody_else_is(path: Path) -> None:
    behind = supplier_of(SystemId("cs"), b"\1\2")
    known = suppliers_at(path)
    known.note([FIRST, SECOND], "xinu")
    known.note([FIRST], behind)
    again = suppliers_at(path)
    assert [again.has(FIRST, name) for name in ("xinu", behind, "xin", "cs")] == [True, True, False, False]
    assert [again.has(SECOND, name) for name in ("xinu", behind)] == [True, False]


@pytest.mark.parametrize("cut", range(1, 80))
def test_a_cut_last_line_names_no_supplier_and_harms_no_other_line(path: Path, cut: int) -> None:
    known = suppliers_at(path)
    known.note([FIRST], "xinu")
    known.note([SECOND], "xinu/0123456789abcdef")
    path.write_bytes(path.read_bytes()[:-cut])
    again = suppliers_at(path)
    names = ["xinu/0123456789abcdef"[:length] for length in range(22)]
    assert not any(again.has(SECOND, name) for name in names[:-1])
    again.note([THIRD], "cs")
    last = suppliers_at(path)
    assert (last.has(FIRST, "xinu"), last.has(THIRD, "cs")) == (True, True)
    assert not any(last.has(SECOND, name) for name in (*names[:-1], f"{names[-1]}{THIRD.hex()} cs"))


@pytest.mark.parametrize("tail", [b"\0" * 4_096, b"\xff\xfe garbage", b"\n\n\n", THIRD.hex().encode() + b" eve\n"])
def test_what_was_not_written_by_this_module_names_no_supplier(path: Path, tail: bytes) -> None:
    suppliers_at(path).note([FIRST], "xinu")
    with path.open("ab") as file:
        file.write(tail)
    again = suppliers_at(path)
    assert (again.has(FIRST, "xinu"), again.has(THIRD, "eve")) == (True, False)
    again.note([SECOND], "cs")
    assert suppliers_at(path).has(SECOND, "cs")


def test_a_line_that_was_changed_names_no_supplier(path: Path) -> None:
    suppliers_at(path).note([FIRST], "xinu")
    path.write_bytes(path.read_bytes().replace(b"xinu", b"xino"))
    assert not suppliers_at(path).has(FIRST, "xino")


def test_a_full_disk_in_the_middle_of_a_line_harms_no_later_line(path: Path) -> None:
    known = suppliers_at(path)
    known.note([FIRST], "xinu")
    path.write_bytes(path.read_bytes()[:-5])
    known.note([SECOND], "cs")
    assert suppliers_at(path).has(SECOND, "cs")


def test_files_that_were_deleted_are_unknown_after_a_restart_and_may_come_again(path: Path) -> None:
    known = suppliers_at(path)
    known.note([FIRST, SECOND, THIRD], "xinu")
    known.forget([FIRST, SECOND])
    known.note([SECOND], "cs")
    for each in (known, suppliers_at(path)):
        held = [[each.has(sha256, name) for name in ("xinu", "cs")] for sha256 in (FIRST, SECOND, THIRD)]
        assert held == [[False, False], [False, True], [True, False]]


def test_the_record_of_files_that_come_and_go_stays_small(path: Path) -> None:
    # The lines of one round are too few for the file to be written anew: those of earlier rounds have to count.
    for _ in range(8):
        known = suppliers_at(path)
        for _ in range(2_000):
            known.note([FIRST], "xinu")
            known.forget([FIRST])
    assert path.stat().st_size < 1 << 20
    assert not suppliers_at(path).has(FIRST, "xinu")


def test_of_very_many_suppliers_of_a_file_the_latest_are_known_and_the_record_stays_small(path: Path) -> None:
    known = suppliers_at(path)
    for number in range(10_000):
        known.note([FIRST], f"eve/{number}")
    assert path.stat().st_size < 1 << 20
    for each in (known, suppliers_at(path)):
        assert each.has(FIRST, "eve/9999")
        assert not each.has(FIRST, "eve/0")


def test_a_neighbor_that_invents_suppliers_of_a_file_keeps_sixteen_and_takes_nobody_elses(path: Path) -> None:
    known = suppliers_at(path)
    others = ("xinu", supplier_of(SystemId("xinu"), b"\1"), "user:1")
    for name in others:
        known.note([FIRST], name)
    invented = [supplier_of(SystemId("eve"), number.to_bytes(16, "big")) for number in range(1_000)]
    for name in invented:
        known.note([FIRST], name)
    for each in (known, suppliers_at(path)):
        assert all(each.has(FIRST, name) for name in others)
        assert [name for name in invented if each.has(FIRST, name)] == invented[-16:]


def test_of_too_many_suppliers_of_all_files_the_neighbor_with_most_loses_its_earliest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppliers, "_SUPPLIERS_OF_ALL", 100)
    hashes = [number.to_bytes(32, "big") for number in range(1_000)]
    known = suppliers_at(path)
    known.note(hashes[:30], "xinu")
    known.note(hashes[:20], "user:1")
    for begin in range(0, 1_000, 10):
        known.note(hashes[begin : begin + 10], supplier_of(SystemId("eve"), bytes([begin % 16])))
        known.note(hashes[begin : begin + 10], supplier_of(SystemId("eve"), bytes([16])))
    for each in (known, suppliers_at(path)):
        assert all(each.has(sha256, "xinu") for sha256 in hashes[:30])
        assert all(each.has(sha256, "user:1") for sha256 in hashes[:20])
        left = [sha256 for sha256 in hashes if each.has(sha256, supplier_of(SystemId("eve"), bytes([16])))]
        assert 15 <= len(left) <= 50
        assert left[-1] == hashes[-1]
    assert known.held_by("xinu") == Amount()


def test_nobody_waits_for_the_disk_to_know_a_supplier_or_to_note_one(path: Path) -> None:
    known = suppliers_at(path)
    # Whoever opens it to write waits until somebody reads.
    os.mkfifo(path)

    def ask() -> list[bool]:
        eventually(lambda: known.has(FIRST, "xinu"))
        known.note([SECOND], "cs")
        known.forget([FIRST])
        return [known.has(FIRST, "xinu"), known.has(SECOND, "cs")]

    with ThreadPoolExecutor() as threads:
        writing = threads.submit(known.note, [FIRST], "xinu")
        asking = threads.submit(ask)
        try:
            eventually(asking.done)
            assert not writing.done()
        finally:
            reading = os.open(path, os.O_RDWR)
        assert asking.result() == [False, True]
        writing.result()
    written = os.read(reading, 65_536)
    os.close(reading)
    assert [name in written for name in (b"xinu", b"cs", b" /")] == [True, True, True]


def test_what_a_supplier_has_is_counted_once_and_then_follows_what_comes_and_goes(path: Path) -> None:
    suppliers_at(path).note([FIRST, SECOND], "xinu")
    looked_at: list[bytes] = []

    def size_of(sha256: bytes) -> int | None:
        looked_at.append(sha256)
        return SIZES.get(sha256)

    known = Suppliers(path, size_of)
    assert known.held_by("xinu") == Amount(file_count=2, size_bytes=21)
    assert known.held_by("cs") == Amount()
    known.note([SECOND, THIRD, THIRD], "xinu")
    known.note([FIRST], "cs")
    assert known.held_by("xinu") == Amount(file_count=3, size_bytes=321)
    assert known.held_by("cs") == Amount(file_count=1, size_bytes=1)
    known.forget([FIRST])
    assert known.held_by("xinu") == Amount(file_count=2, size_bytes=320)
    assert known.held_by("cs") == Amount()
    assert sorted(looked_at) == [FIRST, SECOND, THIRD]


def test_files_that_somebody_removed_are_forgotten_when_they_are_counted_again(path: Path) -> None:
    sizes: dict[bytes, int] = {FIRST: 1, SECOND: 20}
    known = Suppliers(path, sizes.get)
    known.note([FIRST, SECOND], "xinu")
    known.note([FIRST], "cs")
    assert known.held_by("cs") == Amount(file_count=1, size_bytes=1)
    assert known.held_by("xinu") == Amount(file_count=2, size_bytes=21)
    del sizes[FIRST]
    assert known.held_by("xinu", is_counted_again=True) == Amount(file_count=1, size_bytes=20)
    assert known.held_by("cs") == Amount()
    assert not suppliers_at(path).has(FIRST, "xinu")
    sizes[FIRST] = 1
    known.note([FIRST], "xinu")
    assert known.held_by("xinu") == Amount(file_count=2, size_bytes=21)


def test_the_earliest_of_many_suppliers_of_a_file_has_it_no_more(path: Path) -> None:
    known = suppliers_at(path)
    known.note([FIRST, SECOND], "first")
    assert known.held_by("first") == Amount(file_count=2, size_bytes=21)
    for number in range(256):
        known.note([FIRST], f"next{number}")
    assert known.held_by("first") == Amount(file_count=1, size_bytes=20)
    assert known.held_by("next0") == Amount(file_count=1, size_bytes=1)


def test_counts_are_right_when_files_come_and_go_meanwhile(path: Path) -> None:
    hashes = [number.to_bytes(32, "big") for number in range(2_000)]
    known = Suppliers(path, lambda _: 1)
    known.note(hashes[:1_000], "xinu")

    def change() -> None:
        for sha256 in hashes[1_000:]:
            known.note([sha256], "xinu")
        known.forget(hashes[500:1_500])

    with ThreadPoolExecutor() as threads:
        changing = threads.submit(change)
        while not changing.done():
            known.held_by("xinu", is_counted_again=True)
        changing.result()
    assert known.held_by("xinu") == Amount(file_count=1_000, size_bytes=1_000)
