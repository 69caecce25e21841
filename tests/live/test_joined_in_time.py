"""A newcomer is in the vectors of its parent within two update periods after it has joined (MESSIAHS 6.2, 7.3)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.events import MemberAdded
from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.instants import SECOND
from messiahs.trace.format.records import Record
from messiahs.trace.show.reader import read_segments
from tests.live.joiners import JOINED_BY_POLICY, Campus, campus
from tests.waiting import eventually

pytestmark = pytest.mark.live
PERIOD_S = 10
"""Long, since the daemon of the newcomer starts within it, on a slow machine, too."""


@pytest.fixture
def slow_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start two systems whose vectors are seldom sent unless something changes."""
    with campus(tmp_path, join=JOINED_BY_POLICY, others="  ee: {parent: cs}\n", period=f"{PERIOD_S}s") as made:
        yield made


def test_a_newcomer_is_in_the_vectors_of_its_parent_within_two_periods(slow_campus: Campus) -> None:
    def machines_at_child() -> int:
        with slow_campus.federation.client("ee") as client:
            return int(client.vectors()["down"]["machines"])

    eventually(lambda: machines_at_child() == 1)
    slow_campus.federation.document("trace", "start", "--module", "cs")
    xinu = slow_campus.newcomer("xinu")
    xinu.joined(slow_campus.token(), slow_campus.address)
    eventually(lambda: machines_at_child() == 2, lambda: xinu.told)
    slow_campus.federation.document("trace", "stop", "--module", "cs")

    files = sorted((slow_campus.federation.folder("cs") / "trace").glob("*.trace"))
    records = [record for segment in read_segments(files) for record in segment.records()]
    (joined_at,) = [each.at for each in records if isinstance(each.subject, MemberAdded)]
    # What its other child hears, as the parent itself has recorded it.
    seen_at = [each.at for each in records if _says_two_machines(each)]
    assert joined_at < seen_at[0] <= joined_at + 2 * PERIOD_S * SECOND


def _says_two_machines(record: Record) -> bool:
    vectors = [each for each in record.actions if isinstance(each, SendVector) and each.to == "ee"]
    return any(each.message.kind is VectorKind.FOR_CHILDREN and each.message.vector.machines == 2 for each in vectors)
