"""Two requests for one name: a system that asks again replaces its own, and no other one."""

from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.model.instants import SECOND
from messiahs.wire.codec import JoinAccept, JoinPending
from tests.unit.daemon.membership.doors import WAITS, XINU, ListedMembers, Rig, denied, play, wanting


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Return a door at which an administrator decides."""
    return Rig(folder=tmp_path, members=ListedMembers())


def test_two_requests_for_one_name_do_not_wait_at_once(rig: Rig) -> None:
    rig.ask(rig.token(), wanting())
    assert denied(rig.ask(rig.token(), wanting())) == (
        "a system with another key asks to join as xinu already: `messiahs join deny xinu` at cs ends that request; "
        "or choose another name"
    )


def test_a_system_that_asks_again_with_another_token_takes_its_former_request_back(rig: Rig) -> None:
    former, later, request = rig.token(), rig.token(), wanting()
    rig.ask(former, request)
    assert rig.ask(later, request) == JoinPending(text=WAITS, again_ns=2 * SECOND)
    assert [each.id for each in rig.door.book.waiting()] == [later.id]
    assert denied(rig.ask(former, request)) == "xinu has asked again with another token"
    play(rig.door.decide(XINU, is_approved=True))
    assert isinstance(rig.ask(later, request), JoinAccept)


def test_a_newcomer_that_was_started_with_other_options_is_listed_with_these(rig: Rig) -> None:
    token, request = rig.token(), wanting()
    rig.ask(token, request)
    (before,) = rig.door.book.waiting()
    rig.clock[0] += SECOND
    rig.ask(token, replace(request, address="blays:7101", machine=(("slots", 2),)))
    (after,) = rig.door.book.waiting()
    assert before.asked is not None
    assert after == replace(before, asked=replace(before.asked, address="blays:7101", machine=(("slots", 2),)))
