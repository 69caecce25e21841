"""What the documents of tasks say about their ends."""

from collections.abc import Mapping

import pytest

from messiahs.client.module import ModuleClient
from messiahs.client.status import FINAL_STATES, is_final
from tests.unit.client.local_api_peer import StartPeer


@pytest.mark.parametrize(
    ("document", "has_ended"),
    [
        *(({"state": state}, True) for state in sorted(FINAL_STATES)),
        ({"state": "waiting"}, False),
        ({"state": "executing", "substate": "suspended"}, False),
        ({}, False),
        ({"members": 3, "counts": {"finished": 2, "killed": 1}}, True),
        ({"members": 3, "counts": {"finished": 2, "running": 1}}, False),
        ({"members": 3, "counts": {"finished": 2}}, False),
    ],
)
def test_an_array_has_ended_with_the_last_of_its_members(document: Mapping[str, object], has_ended: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert is_final(document) is has_ended


def test_many_tasks_are_asked_for_in_requests_of_64(start_peer: StartPeer) -> None:
    peer = start_peer(
        *((200, {"tasks": [{"id": f"part {number}"}], "unknown": [f"unknown {number}"]}) for number in range(3))
    )
    with ModuleClient(peer.socket_path, patience=0.0) as module:
        answer = module.tasks(*(f"left.{number}" for number in range(130)), members=True)
    assert [one["id"] for one in answer["tasks"]] == ["part 0", "part 1", "part 2"]
    assert answer["unknown"] == ["unknown 0", "unknown 1", "unknown 2"]
    assert [path.count("id=left.") for _, path, _ in peer.asked] == [64, 64, 2]
    assert all(path.endswith("&members=1") for _, path, _ in peer.asked)
