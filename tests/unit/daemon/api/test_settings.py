"""The neighbors of a module while another primary parent is not counting it yet."""

from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.api.settings import before_handover

OLD, NEW, CHILD = SystemId("old"), SystemId("new"), SystemId("child")
NEAR, FAR = SystemId("near"), SystemId("far")
PRIMARY = Neighbor(system=OLD, is_parent=True, is_primary_parent=True)
RUNNING = ((PRIMARY, "old:1"), (Neighbor(system=NEAR, is_sibling=True), ""))
NEW_PRIMARY = (Neighbor(system=NEW, is_parent=True, is_primary_parent=True), "new:1")


def test_the_old_primary_parent_stays_until_the_new_one_counts() -> None:
    assert before_handover(RUNNING, (NEW_PRIMARY,), parent=NEW) == (
        *RUNNING,
        (Neighbor(system=NEW, is_parent=True), "new:1"),
    )


def test_a_second_parent_that_becomes_the_primary_one_is_a_parent_like_others_until_then() -> None:
    second = Neighbor(system=NEW, is_parent=True)
    wanted = ((Neighbor(system=OLD, is_parent=True), "old:2"), NEW_PRIMARY)
    staged = before_handover(((PRIMARY, "old:1"), (second, "new:1")), wanted, parent=NEW)
    assert staged == ((PRIMARY, "old:2"), (second, "new:1"))


def test_a_sibling_that_becomes_the_primary_parent_stays_a_sibling_until_then() -> None:
    staged = before_handover(((PRIMARY, ""), (Neighbor(system=NEW, is_sibling=True), "")), (NEW_PRIMARY,), parent=NEW)
    assert staged[1][0] == Neighbor(system=NEW, is_parent=True, is_sibling=True)


def test_new_siblings_follow_the_new_parent_and_other_neighbors_come_at_once() -> None:
    child = (Neighbor(system=CHILD, is_child=True, is_primary_child=True), "")
    wanted = (NEW_PRIMARY, (Neighbor(system=FAR, is_sibling=True), "far:1"), child)
    staged = before_handover(RUNNING, wanted, parent=NEW)
    assert FAR not in {neighbor.system for neighbor, _ in staged}
    assert child in staged
    assert RUNNING[1] in staged
