"""`messiahs module explain`: what is printed for the owner of a machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.cli.module.explaining import explanation_lines
from messiahs.cli.output import local_time
from tests.unit.client.local_api_peer import StartPeer

AT, LATER = "2026-03-01T12:00:00.000Z", "2026-03-01T12:30:00.000Z"
NONE = {"requests": 0, "tasks": 0, "accepted": 0, "refused": 0, "places": 0, "first_at": None, "last_at": None}
SOME = {"requests": 3, "tasks": 6, "accepted": 1, "refused": 2, "places": 1, "first_at": AT, "last_at": LATER}
SENT = [{"kind": "for_parents", "machines": 2, "at": LATER}]


def neighbor(system: str, relation: str, **said: object) -> dict[str, Any]:
    typical = {"linked": True, "why_unlinked": "", "revealed": True, "hidden": [], "sent": []}
    return {"system": system, "relation": relation, **typical, **NONE, **said}


def explained(**said: object) -> dict[str, Any]:
    return {
        "name": "me",
        "conclusion": "2 of 3 requests were refused by `require $mem < 2GiB` (line 7), and 1 got places",
        "since": AT,
        "machine": {"here": {}, "told": {}, "kept": ["rack"]},
        "neighbors": [
            neighbor("up", "parent", **SOME, sent=SENT, hidden=["speed"]),
            neighbor("beside", "sibling", revealed=False),
            neighbor("below", "child", linked=False, why_unlinked="it has never been linked"),
        ],
        "own_users": NONE,
        **{name: SOME[name] for name in ("requests", "tasks", "accepted", "places")},
        "compared": 1,
        "matched": 1,
        "refusals": [
            {
                "gate": "rule",
                "text": "by `require $mem < 2GiB` (line 7)",
                "requests": 2,
                "tasks": 5,
                "example": {
                    "at": LATER,
                    "neighbor": "up",
                    "origin": "far",
                    "tdv": {"user": "ann", "cpus": 1, "mem": 4, "name": "x"},
                    "requirement": "$speed > 3",
                    "tasks": 2,
                    "why": "$mem is 4",
                },
            }
        ],
        **said,
    }  # fmt: skip


def test_the_conclusion_comes_first_then_who_knows_the_machine_who_asked_and_what_refused() -> None:
    at, later = local_time(AT), local_time(LATER)
    counts = "3 requests for 6 tasks, 1 got 1 place, 2 refused"
    assert list(explanation_lines(explained())) == [
        "me: 2 of 3 requests were refused by `require $mem < 2GiB` (line 7), and 1 got places",
        "what neighbors are told of the machine:",
        f"  up (parent): 2 machines as a parent at {later}, without speed",
        "  beside (sibling): nothing, since the policy reveals nothing to it",
        "  below (child): nothing, since it is not linked: it has never been linked",
        "  not advertised to any: rack",
        f"requests since {at}: {counts}",
        f"  up: {counts}; the first at {at}, the last at {later}",
        "  beside: none",
        "  below: none",
        "refused:",
        "  2 requests for 5 tasks by `require $mem < 2GiB` (line 7)",
        f"    such as at {later} from up, of far ($cpus 1, $mem 4, $user ann, --require '$speed > 3'): $mem is 4",
        "1 of 1 request fit the machine, if it were idle (2 refused before that)",
    ]


def test_without_a_request_there_is_nothing_to_compare() -> None:
    silent = explained(
        neighbors=[], requests=0, tasks=0, accepted=0, places=0, compared=0, matched=0, refusals=[], machine=None,
        conclusion="no neighbor asked since 2026-03-01T12:00:00Z: the module has none",
    )  # fmt: skip
    assert list(explanation_lines(silent)) == [
        f"me: no neighbor asked since {local_time(AT)}: the module has none",
        "there is no neighbor to be told",
        f"requests since {local_time(AT)}: none",
    ]


def test_own_users_have_a_line_of_their_own_and_requests_may_all_be_refused_before() -> None:
    lines = list(explanation_lines(explained(own_users=SOME, compared=0, matched=0)))
    assert [line for line in lines if line.startswith("  its own users: 3 requests")]
    assert lines[-1] == "no request was compared with the machine: they were refused before"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_asks_the_module(
    start_peer: StartPeer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    as_json: bool,
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    peer = start_peer((200, explained()), state=tmp_path)
    assert main(["module", "explain", "--module", "left", *["--json"] * as_json]) == 0
    printed = capsys.readouterr().out
    if as_json:
        assert json.loads(printed) == {"schema": 1, **explained()}
    else:
        assert printed.splitlines() == list(explanation_lines(explained()))
    assert [(method, path) for method, path, _ in peer.asked] == [("GET", "/v1/module/explanation")]
