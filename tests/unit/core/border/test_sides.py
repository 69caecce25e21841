"""Which systems a border takes for inside and outside: one that it does not know gets nothing that is hidden."""

import pytest

from messiahs.core.border.outward import outward
from messiahs.core.border.pseudonyms import shown_user
from messiahs.core.border.sides import crosses, hides_from, is_hidden
from messiahs.core.interface.actions import Report, ReportCode, SendControl
from messiahs.core.interface.messages import SchedRequest, TaskRequest
from messiahs.core.model.ids import MessageId, SearchId
from messiahs.core.model.instants import SECOND
from tests.unit.core.border.gate import HOME, gate
from tests.unit.core.rig import CHILD, ME, OTHER_CHILD, PARENT, SIBLING, STRANGER, request

UNKNOWN_ASKER = TaskRequest(
    id=MessageId(77), search=SearchId(b"r" * 16), requester=HOME, wanting="", count=1, hops_left=32, asks_left=64,
    remaining_ns=10 * SECOND,
)  # fmt: skip


def test_a_stranger_is_shown_nothing_of_either_side_and_nothing_of_it_is_shown() -> None:
    state = gate().state
    assert all(is_hidden(state, system, viewer=STRANGER) for system in (ME, CHILD, PARENT))
    assert all(is_hidden(state, STRANGER, viewer=viewer) for viewer in (PARENT, SIBLING))
    assert hides_from(state, STRANGER)
    assert all(crosses(state, STRANGER, other) for other in (ME, CHILD, PARENT, STRANGER))


def test_neighbors_of_one_side_hide_nothing_from_each_other() -> None:
    state = gate().state
    pairs = ((CHILD, OTHER_CHILD), (CHILD, ME), (PARENT, SIBLING))
    assert not any(crosses(state, one, other) or is_hidden(state, one, viewer=other) for one, other in pairs)
    assert not hides_from(state, ME)


@pytest.mark.parametrize("ask", [request(77, origin=HOME), UNKNOWN_ASKER], ids=["places", "tasks"])
def test_a_request_whose_asker_is_unknown_does_not_leave(ask: SchedRequest | TaskRequest) -> None:
    (report,) = outward(gate().state, (SendControl(to=PARENT, message=ask),))
    assert isinstance(report, Report)
    assert (report.neighbor, report.code) == (PARENT, ReportCode.OUT_OF_RANGE)


def test_the_names_of_a_user_and_a_home_do_not_run_into_each_other() -> None:
    state = gate().state
    assert shown_user(state, "bc", home="a", to=PARENT) != shown_user(state, "c", home="ab", to=PARENT)
