"""The audit log of a third site counts the connections that it passes on and cannot read, for both neighbors."""

from dataclasses import replace

from messiahs.core import queries
from messiahs.core.audit.storing import STORED_AFTER_NS
from messiahs.core.interface.actions import Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.spliced_bytes import BytesSpliced
from messiahs.core.model.instants import MINUTE
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, make_module, only


def hop() -> Rig:
    rig = Rig(make_module(apart=(PARENT, SIBLING)))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    return rig


def moved(forth_bytes: int, back_bytes: int, *, connections: int = 0) -> BytesSpliced:
    return BytesSpliced(
        toward_origin=PARENT,
        toward_executor=SIBLING,
        connections=connections,
        forth_bytes=forth_bytes,
        back_bytes=back_bytes,
    )


def test_bytes_are_counted_in_one_row_a_minute_for_each_neighbor_and_written_with_others() -> None:
    rig = hop()
    assert rig.handle(moved(10, 200, connections=1)) == ()
    assert rig.handle(moved(5, 0)) == ()
    stored = [each.row for each in only(rig.wait(STORED_AFTER_NS), Store) if isinstance(each.row, AuditRow)]
    assert [(row.neighbor, row.is_outward, row.code, row.count, row.in_bytes, row.out_bytes) for row in stored] == [
        (PARENT, False, SIBLING, 1, 15, 200),
        (SIBLING, True, PARENT, 1, 200, 15),
    ]
    assert {row.what for row in stored} == {Crossed.SPLICED}
    rig.wait(MINUTE)
    rig.handle(moved(1, 1))
    assert len(queries.unstored_audit_rows(rig.state)) == 2


def test_a_neighbor_of_the_own_site_has_no_row() -> None:
    rig = hop()
    rig.handle(replace(moved(10, 20, connections=1), toward_executor=CHILD))
    assert [row.neighbor for row in queries.unstored_audit_rows(rig.state).values()] == [PARENT]
