"""The description of why a machine gets no work, and the sentence that concludes it."""

from typing import Any

import pytest

from messiahs.core import queries
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.request_counts import Gate
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.api.module_conclusion import conclusion, refused_text
from messiahs.daemon.api.module_explanation import neighbor_documents, requests_document
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.rig import GIB, PARENT, SIBLING, Rig, make_module, request, tdv

POLICY = """policy "strict" version 1;
accept from parent {
    require $mem default 0 < 2GiB else "only small tasks here";
}
accept from siblings { }
reveal to siblings nothing;
"""
AT = "2026-03-01T12:00:00.000Z"
NEIGHBORS = (Neighbor(system=PARENT, is_parent=True, is_primary_parent=True), Neighbor(system=SIBLING, is_sibling=True))


@pytest.fixture
def rig() -> Rig:
    """Make a module with a machine and a policy file, linked with its parent and a sibling."""
    made = Rig(module=make_module(neighbors=NEIGHBORS, policy=parse_policy(POLICY, file="strict.policy")))
    made.resume()
    made.greet(PARENT, SIBLING)
    made.measure()
    made.wait(3 * SECOND)
    return made


def ask(rig: Rig, number: int, /, **said: object) -> None:
    rig.hear(PARENT, request(number, search=SearchId(number.to_bytes(16)), **said))


def requests_of(rig: Rig) -> dict[str, Any]:
    policy: Policy = rig.state.policy
    counts = queries.requests_here(rig.state, rig.now)
    return requests_document(counts, policy, machine=queries.advertised(rig.state, rig.now))


def neighbors_of(rig: Rig) -> dict[str, dict[str, Any]]:
    counts = queries.requests_here(rig.state, rig.now)
    found = neighbor_documents(queries.disclosed(rig.state), counts, why_unlinked=queries.why_unlinked(rig.state))
    return {each["system"]: each for each in found}


def test_a_rule_has_its_line_and_an_example_with_the_values(rig: Rig) -> None:
    ask(rig, 1, tdv=tdv(mem=4 * GIB), count=3)
    ask(rig, 2, tdv=tdv(mem=8 * GIB), count=2)
    ask(rig, 3)
    document = requests_of(rig)
    assert (document["requests"], document["tasks"], document["accepted"]) == (3, 6, 1)
    (refused,) = document["refusals"]
    assert (refused["gate"], refused["requests"], refused["tasks"], refused["lines"]) == ("rule", 2, 5, [3])
    assert refused["text"] == "by `require $mem default 0 < 2GiB` (line 3)"
    example = refused["example"]
    assert (example["neighbor"], example["origin"], example["tasks"]) == ("parent", "origin", 2)
    assert example["tdv"]["mem"] == 8 * GIB
    assert "$mem" in example["why"]
    assert "8" in example["why"]


def test_senders_without_a_block_are_refused_by_no_line(rig: Rig) -> None:
    made = Rig(module=make_module(neighbors=NEIGHBORS, policy=parse_policy('policy "none" version 1;', file="none")))
    made.resume()
    made.greet(PARENT)
    made.measure()
    ask(made, 1)
    (refused,) = requests_of(made)["refusals"]
    assert (refused["text"], refused["lines"]) == ("by `accept from parent`", [])


def test_a_task_that_does_not_fit_says_what_of_it(rig: Rig) -> None:
    ask(rig, 1, tdv=tdv(cpus=9))
    ask(rig, 2, requirement="$speed > 5000")
    whys = {each["gate"]: each["example"]["why"] for each in requests_of(rig)["refusals"]}
    assert whys == {"too_small": "not $slots >= $cpus", "unmet": "not $speed > 5000"}
    document = requests_of(rig)
    assert (document["compared"], document["matched"]) == (2, 0)


def test_each_neighbor_has_what_it_is_told_and_what_it_requested(rig: Rig) -> None:
    ask(rig, 1)
    found = neighbors_of(rig)
    assert found[PARENT]["revealed"]
    assert [(each["kind"], each["machines"]) for each in found[PARENT]["sent"]] == [("for_parents", 1)]
    assert found[PARENT]["sent"][0]["at"] is not None
    assert (found[PARENT]["requests"], found[PARENT]["accepted"], found[PARENT]["refused"]) == (1, 1, 0)
    assert not found[SIBLING]["revealed"]
    assert (found[SIBLING]["requests"], found[SIBLING]["first_at"]) == (0, None)


def neighbor(system: str = "up", /, **said: object) -> dict[str, Any]:
    return {"system": system, "linked": True, "revealed": True, "requests": 0, **said}


def described(**said: object) -> dict[str, Any]:
    """Describe an idle module whose parent knows its machine, and has asked nothing."""
    return {
        "name": "me",
        "has_machine": True,
        "has_space": True,
        "lend": {"position": "policy", "since": None, "until": None, "by": ""},
        "drain": None,
        "machine": {"here": {"free_slots": 4}, "told": {"free_slots": 4}, "kept": []},
        "neighbors": [neighbor()],
        "own_users": {"requests": 0, "accepted": 0},
        "since": AT,
        "requests": 0,
        "accepted": 0,
        "refusals": [],
        **said,
    }


OFF = {"position": "off", "since": AT, "until": None, "by": "alice"}
STAMP = "2026-03-01T12:00:00Z"
UNWANTED = "1 neighbor that knows the machine had no task that fits what is shown of it, or preferred other machines"
SILENT = f"no neighbor asked since {STAMP}: "


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"has_machine": False}, "me has no machine of its own: it only passes requests on"),
        ({"lend": OFF}, f"the machine is lent off by alice since {STAMP}: `messiahs lend on` lends it again"),
        (
            {"drain": {"since": AT, "reason": "repair"}},
            f"the module is drained since {STAMP} (repair): `messiahs module undrain` ends that",
        ),
        ({"has_space": False}, "the disk of the module is full, so it takes no work"),
        ({"machine": None}, "the machine has not been measured yet"),
        ({"neighbors": []}, f"{SILENT}the module has none"),
        ({"neighbors": [neighbor(linked=False)]}, f"{SILENT}none is linked"),
        ({"neighbors": [neighbor(revealed=False)]}, f"{SILENT}the policy reveals this machine to no neighbor"),
        (
            {"neighbors": [neighbor(revealed=False), neighbor("down", linked=False)]},
            f"{SILENT}the policy reveals this machine to no neighbor that is linked",
        ),
        (
            {"machine": {"here": {"free_slots": 0}, "told": {"free_slots": 0}, "kept": []}},
            f"{SILENT}the machine shows no free slot, since all are in use",
        ),
        (
            {},
            f"{SILENT}{UNWANTED}",
        ),
    ],
)
def test_the_conclusion_names_what_keeps_neighbors_from_asking(said: dict[str, Any], sentence: str) -> None:
    assert conclusion(described(**said)) == sentence


def refused(requests: int) -> dict[str, Any]:
    return {"requests": requests, "text": "by `require $mem < 2GiB` (line 7)"}


@pytest.mark.parametrize(
    ("requests", "accepted", "refusals", "sentence"),
    [
        (14, 2, [refused(12)], "12 of 14 requests were refused by `require $mem < 2GiB` (line 7), and 2 got places"),
        (14, 0, [refused(13), refused(1)], "13 of 14 requests were refused by `require $mem < 2GiB` (line 7)"),
        (1, 0, [refused(1)], "1 of 1 request was refused by `require $mem < 2GiB` (line 7)"),
        (3, 3, [], "all 3 requests got places"),
        (1, 1, [], "the only request got places"),
    ],
)
def test_the_conclusion_names_what_refused_most(
    requests: int, accepted: int, refusals: list[dict[str, Any]], sentence: str
) -> None:
    said = {"requests": requests, "accepted": accepted, "refusals": refusals}
    assert conclusion(described(neighbors=[neighbor(requests=requests)], **said)) == sentence


def test_the_work_of_own_users_is_no_request_of_a_neighbor() -> None:
    said = {"requests": 3, "accepted": 2, "own_users": {"requests": 3, "accepted": 2}}
    sentence = conclusion(described(neighbors=[], refusals=[refused(1)], **said))
    assert sentence == f"{SILENT}the module has none; 2 of 3 requests of its own users got places"


@pytest.mark.parametrize("gate", Gate)
def test_each_gate_has_a_text(gate: Gate) -> None:
    assert refused_text(gate, "", ()).startswith(("because ", "by "))


def test_a_rule_that_stands_in_two_places_has_both_lines() -> None:
    assert refused_text(Gate.RULE, "limit 2 tasks", (4, 9)) == "by `limit 2 tasks` (lines 4, 9)"
