"""`messiahs module explain` for three owners: one refuses by a rule, one lends nothing, one is shown to nobody."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

STRICT = """policy "strict" version 1;
accept from any {
    require $mem default 0 < 1GiB else "only small tasks here";
}
accept from users { }
"""
SHY = """policy "shy" version 1;
accept from any { }
accept from users { }
reveal to any nothing;
"""
TOPOLOGY = """
version: 1
federation: owners
defaults: {{update_period: 200ms}}
systems:
  home: {{}}
  strict: {{parent: home, policy: strict.policy, machine: {machine}}}
  lent: {{parent: home, machine: {machine}}}
  shy: {{parent: home, policy: shy.policy, machine: {machine}}}
"""


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a module without a machine, and below it one of each kind."""
    state = tmp_path_factory.mktemp("owners")
    (state / "strict.policy").write_text(STRICT)
    (state / "shy.policy").write_text(SHY)
    topology = state / "owners.yaml"
    topology.write_text(TOPOLOGY.format(machine=fixed_machine(slots=2)))
    made = Federation(topology=topology, name="owners", state=state, module="home")
    with brought_up(made):
        eventually(lambda: made.vectors()["up"]["machines"] == 2, "the two machines that are shown")
        yield made


def explained(owners: Federation, module: str) -> dict[str, Any]:
    return owners.document("module", "explain", "--module", module)


def told_home(document: dict[str, Any]) -> dict[str, Any]:
    """Return what the parent is told; the other neighbors are siblings."""
    return next(each for each in document["neighbors"] if each["system"] == "home")


def printed(owners: Federation, module: str) -> str:
    done = owners.run("module", "explain", "--module", module)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rule_that_refuses_is_named_with_its_line_and_the_values(owners: Federation) -> None:
    assert owners.run("lend", "off", "--module", "lent").returncode == 0
    task = owners.submit("--no-wait", "--mem", "2GiB", "--", "true")
    assert owners.run("wait", task).returncode != 0
    eventually(lambda: explained(owners, "strict")["refusals"], "the refusal")
    document = explained(owners, "strict")
    (refused,) = document["refusals"]
    assert (refused["gate"], refused["lines"]) == ("rule", [3])
    assert refused["rule"] == "require $mem default 0 < 1GiB"
    assert refused["requests"] == document["requests"] == told_home(document)["refused"]
    assert (refused["example"]["neighbor"], refused["example"]["origin"]) == ("home", "home")
    assert refused["example"]["tdv"]["mem"] == 2 << 30
    assert "$mem" in refused["example"]["why"]
    assert (document["compared"], document["matched"]) == (0, 0)
    text = printed(owners, "strict")
    assert "refused by `require $mem default 0 < 1GiB` (line 3)" in text.splitlines()[0]
    small = owners.submit("--", "true")
    assert owners.run("wait", small).returncode == 0
    assert owners.status(small)["executed_on"] == "strict"
    assert explained(owners, "strict")["accepted"] == 1
    assert "and 1 got places" in printed(owners, "strict").splitlines()[0]
    assert owners.run("lend", "policy", "--module", "lent").returncode == 0


def test_a_machine_that_is_lent_off_names_who_said_so_and_what_it_refused(owners: Federation) -> None:
    assert owners.run("lend", "off", "--module", "lent").returncode == 0
    document = explained(owners, "lent")
    assert document["lend"]["position"] == "off"
    assert document["machine"]["here"]["free_slots"] == 2
    assert document["machine"]["told"]["free_slots"] == 0
    first = printed(owners, "lent").splitlines()[0]
    assert first.startswith(f"lent: the machine is lent off by {document['lend']['by']} since ")
    assert first.endswith("`messiahs lend on` lends it again")
    assert owners.run("lend", "policy", "--module", "lent").returncode == 0


def test_a_machine_that_is_revealed_to_no_neighbor_is_never_asked(owners: Federation) -> None:
    eventually(lambda: all(each["linked"] for each in explained(owners, "shy")["neighbors"]), "all links")
    document = explained(owners, "shy")
    assert (document["requests"], document["refusals"]) == (0, [])
    assert told_home(document)["linked"]
    assert [each["revealed"] for each in document["neighbors"]] == [False] * 3
    lines = printed(owners, "shy").splitlines()
    assert lines[0].startswith("shy: no neighbor asked since ")
    assert lines[0].endswith("the policy reveals this machine to no neighbor")
    assert "  home (parent): nothing, since the policy reveals nothing to it" in lines


def test_a_neighbor_that_knows_the_machine_has_when_it_was_told_last(owners: Federation) -> None:
    (sent,) = told_home(explained(owners, "strict"))["sent"]
    assert (sent["kind"], sent["machines"]) == ("for_parents", 1)
    eventually(lambda: told_home(explained(owners, "strict"))["sent"][0]["at"] > sent["at"], "another vector")


def test_another_policy_begins_the_counts_anew(owners: Federation) -> None:
    before = explained(owners, "strict")["since"]
    assert owners.run("policy", "load", str(owners.state / "strict.policy"), "--module", "strict").returncode == 0
    eventually(lambda: explained(owners, "strict")["since"] > before, "counts that began anew")
    assert explained(owners, "strict")["refusals"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks as another account")
def test_only_the_owner_reads_who_asked(owners: Federation) -> None:
    owners.folder("strict").parent.chmod(0o711)

    def code(uid: int) -> int:
        return owners.status_code_for(uid, "GET", path="/v1/module/explanation", module="strict")

    assert (code(0), code(61_013)) == (200, 403)
