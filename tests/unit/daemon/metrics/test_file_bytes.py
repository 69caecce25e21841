"""Bytes of files by the labels of metrics, while neighbors join and leave."""

from collections import Counter
from collections.abc import Mapping

from messiahs.core.model.ids import SystemId
from messiahs.daemon.metrics.file_bytes import OTHER, FileBytes
from messiahs.daemon.transfer.budgets import Moved

CHEM, FAR = SystemId("chem"), SystemId("far")
Labelled = Mapping[tuple[str, Moved], int]


def sent(found: Labelled) -> dict[str, int]:
    """Return the bytes sent by label."""
    return {label: size_bytes for (label, way), size_bytes in found.items() if way is Moved.SENT}


def test_bytes_stay_where_they_were_counted_when_a_system_becomes_a_neighbor() -> None:
    made, moved = FileBytes(), Counter({(FAR, Moved.SENT): 10, (CHEM, Moved.SENT): 1})
    assert sent(made.read(dict(moved), {CHEM})) == {CHEM: 1, OTHER: 10}
    moved[FAR, Moved.SENT] += 5
    assert sent(made.read(dict(moved), {CHEM, FAR})) == {CHEM: 1, FAR: 5, OTHER: 10}


def test_bytes_of_a_neighbor_that_left_do_not_come_to_the_others() -> None:
    made, moved = FileBytes(), Counter({(CHEM, Moved.SENT): 7})
    assert sent(made.read(dict(moved), {CHEM})) == {CHEM: 7, OTHER: 0}
    assert sent(made.read(dict(moved), ())) == {OTHER: 0}
    moved[CHEM, Moved.SENT] += 1
    assert sent(made.read(dict(moved), ())) == {OTHER: 1}
    assert sent(made.read(dict(moved), {CHEM})) == {CHEM: 0, OTHER: 1}


def test_a_neighbor_with_the_name_of_the_others_has_one_line_with_them() -> None:
    moved = {(SystemId(OTHER), Moved.SENT): 2, (FAR, Moved.SENT): 3}
    assert sent(FileBytes().read(moved, {SystemId(OTHER)})) == {OTHER: 5}
