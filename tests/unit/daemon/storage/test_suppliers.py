"""Who supplied which file, also after the end of the record was damaged."""

from pathlib import Path

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage.suppliers import Suppliers, supplier_of

FIRST, SECOND, THIRD = (bytes([number]) * 32 for number in (1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suppliers"


def test_suppliers_are_known_after_a_restart_and_nobody_else_is(path: Path) -> None:
    behind = supplier_of(SystemId("cs"), b"\1\2")
    known = Suppliers(path)
    known.note([FIRST, SECOND], "xinu")
    known.note([FIRST], behind)
    again = Suppliers(path)
    assert [again.has(FIRST, name) for name in ("xinu", behind, "xin", "cs")] == [True, True, False, False]
    assert [again.has(SECOND, name) for name in ("xinu", behind)] == [True, False]


@pytest.mark.parametrize("cut", range(1, 80))
def test_a_cut_last_line_names_no_supplier_and_harms_no_other_line(path: Path, cut: int) -> None:
    known = Suppliers(path)
    known.note([FIRST], "xinu")
    known.note([SECOND], "xinu/0123456789abcdef")
    path.write_bytes(path.read_bytes()[:-cut])
    again = Suppliers(path)
    names = ["xinu/0123456789abcdef"[:length] for length in range(22)]
    assert not any(again.has(SECOND, name) for name in names[:-1])
    again.note([THIRD], "cs")
    last = Suppliers(path)
    assert (last.has(FIRST, "xinu"), last.has(THIRD, "cs")) == (True, True)
    assert not any(last.has(SECOND, name) for name in (*names[:-1], f"{names[-1]}{THIRD.hex()} cs"))


@pytest.mark.parametrize("tail", [b"\0" * 4_096, b"\xff\xfe garbage", b"\n\n\n", THIRD.hex().encode() + b" eve\n"])
def test_what_was_not_written_by_this_module_names_no_supplier(path: Path, tail: bytes) -> None:
    Suppliers(path).note([FIRST], "xinu")
    with path.open("ab") as file:
        file.write(tail)
    again = Suppliers(path)
    assert (again.has(FIRST, "xinu"), again.has(THIRD, "eve")) == (True, False)
    again.note([SECOND], "cs")
    assert Suppliers(path).has(SECOND, "cs")


def test_a_line_that_was_changed_names_no_supplier(path: Path) -> None:
    Suppliers(path).note([FIRST], "xinu")
    path.write_bytes(path.read_bytes().replace(b"xinu", b"xino"))
    assert not Suppliers(path).has(FIRST, "xino")


def test_a_full_disk_in_the_middle_of_a_line_harms_no_later_line(path: Path) -> None:
    known = Suppliers(path)
    known.note([FIRST], "xinu")
    path.write_bytes(path.read_bytes()[:-5])
    known.note([SECOND], "cs")
    assert Suppliers(path).has(SECOND, "cs")


def test_of_very_many_suppliers_of_a_file_the_latest_are_known_and_the_record_stays_small(path: Path) -> None:
    known = Suppliers(path)
    for number in range(10_000):
        known.note([FIRST], f"eve/{number}")
    assert path.stat().st_size < 1 << 20
    for each in (known, Suppliers(path)):
        assert each.has(FIRST, "eve/9999")
        assert not each.has(FIRST, "eve/0")
