"""Policies as administrators write them: the shipped ones, and four that use every block."""

from pathlib import Path

import pytest

from messiahs.config.policies import read_policy
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Accepted, Placed
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.policy.update import key_changes
from tests.unit.language.policy_rig import Draws, policy, refusal, request, tdv

SHIPPED = [Path(__file__).parents[3] / "policies" / f"{name}.policy" for name in ("department", "open")]
"""Policies for general use; the others have tests next to them."""
NEIGHBORS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)

DESKTOP = """policy "a desktop" version 1;

let night   = $now.clock >= 20:00 or $now.clock < 7:00 or $now.weekday >= 6;
let at_desk = $here.keyboard_idle < 15min;

attribute $cpu string optional;

advertise every 1min or after change of 20% {
    send $cpu;
    set $willingness = 90 when night else 10 when not at_desk else 0;
}
accept from parent {
    require night and not at_desk            else "lent at night only";
    require $mem <= 8GiB and $est_time <= 10h else "too large for a desktop";
    when $here.load < 30%;
    limit 2 tasks;
}
running {
    suspend unless $here.keyboard_idle >= 30s;           # a broken sensor suspends too
    resume  when   $here.keyboard_idle >= 5min for 1min;
    vacate  when   $task.suspended >= 10min grace 5min then kill;
    move    unless night grace 10min then kill else "the owner's day begins";
}
"""

DEPARTMENT = """policy "cs.example" version 1;
attribute $cpu string optional;
attribute $gpus int 0..16 optional;
attribute $licence string optional;
advertise every 30s or after change of 10% { send $cpu, $gpus; }
combine { $gpus: key; $cpu: key; default: carry; $licence: drop; }
accept from children, siblings {
    require $mem <= 64GiB and $est_time <= 2d;
    require $gpus default 0 <= 4 else "not that many GPUs here";
    when $origin like "*.cs.example.edu";
    when $licence default "" in ("", "academic") and $here.load < 80%;
    limit 400 tasks;
    limit 40 tasks per $origin;
}
rank candidates by first where $cand.relation eq "child",
    first where ($avail_mem >= 4000000) and ($cpu eq "sparc"),    # the paper's own predicate
    most ($willingness * 10 - $load / 100), least $wait_time default 1h, random;
running {
    move when $here.load >= 95% for 5min grace 15min;
    kill when $task.mem_used > $task.mem_reserved for 30s else "memory";
}
migrate {
    offer when $task.ran < 10min or $task.checkpointable default 0 = 1;
    ask every 1min when $here.load < 25% wanting { ($mem <= 16000000000) and ($est_time >= 600) };
    keep at least 1 tasks;
}
join {
    allow child when $peer.name like "*.cs.example.edu" limit 500;
    allow sibling when $peer.name in ("ecn.example.edu", "pucc.example.edu");
}
timeouts { input 3min; request 10s; status 5min; lease 5min; }
"""

GATEWAY = """policy "site gateway" version 1;               # the topology says reach: proxy
attribute $cpu string optional;
combine { $cpu: key; $slots: carry; $load: carry; default: drop; }
reveal to parent, siblings {
    as "site-7.example.org";               # the gateway's name replaces every member's
    only $arch, $free_slots, $avail_mem, $cpu;
    hide counts below 5;
}
reveal to children { all except $wait_time, $queue_length; }
reveal to any nothing;
accept from parent, siblings {
    require $origin in ("ncsa.edu", "anl.gov") else "no agreement with that site";
    require $mem <= 64GiB and $task.checkpointable = 1;
    when $now.clock >= 18:00 or $here.utilization < 60%;
    limit 64 tasks per $origin;
}
rank candidates by least $load, round robin;
join { allow child when $peer.name like "*.site-7" limit 2000; }
timeouts { input 2min; request 5s; }
"""

HOSTING = """policy "hosting with paying partner" version 1;
attribute $bid int 0..1000000 optional;
attribute $account string optional;

let partner = $task.from eq "acme.example" and $task.account default "" eq "acme-2031";

accept from "acme.example" {
    require partner and $peer.balance > 0 else "no credit left";
    when $mem <= 256GiB;
    limit 512 tasks;
}
accept from any {
    require $here.load < 60%;
    when $bid default 0 >= 20 and $est_time <= 6h;
    when $est_time <= 15min;
    limit 32 tasks per $origin;
}
rank tasks by first where partner, most $task.bid default 0, least $task.waited;
running tasks where not partner {
    suspend when $here.waiting_above >= 1;
    resume  when $here.waiting_above = 0 for 2min;
    move    when $task.suspended > 20min grace 10min then vacate;
}
reveal to "acme.example" { all; }
reveal to any { only $willingness, $arch, $free_slots; }
timeouts { input 90s; request 500ms; }
"""


EXAMPLES = {"desktop": DESKTOP, "department": DEPARTMENT, "gateway": GATEWAY, "hosting": HOSTING}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_policy_has_no_warnings_and_accepts_a_task_without_options(path: Path) -> None:
    compiled = read_policy(path)
    assert compiled.warnings == ()
    rules: Policy = compiled
    for relation in (*NEIGHBORS, Relation.SELF):
        assert rules.acceptance.decide(request(relation=relation), (), Draws()) == (Accepted(), ())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_policy_has_a_limit_for_every_sender(path: Path) -> None:
    rules = read_policy(path)
    full = (Placed(tdv=tdv(), slots=10_000),)
    assert all(
        refusal(rules.acceptance.judge(request(relation=each, placed=full))).rule
        for each in (*NEIGHBORS, Relation.SELF)
    )


def test_the_department_states_which_tasks_it_refuses() -> None:
    rules = read_policy(SHIPPED[0])
    assert refusal(rules.acceptance.judge(request(tdv(gpus=5)))).text == "not that many GPUs here"
    assert (
        refusal(rules.acceptance.judge(request(tdv(mem=20 << 30), relation=Relation.PARENT))).text == "at most 16 GiB"
    )


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_has_no_mistakes(text: str) -> None:
    assert policy(text).name


def test_the_department_decides() -> None:
    rules = policy(DEPARTMENT)
    plain = tdv(mem=1 << 30, est_time=60, origin="vax.cs.example.edu")
    assert rules.acceptance.judge(request(plain)) == Accepted()
    assert (
        refusal(rules.acceptance.judge(request(plain, relation=Relation.PARENT))).text
        == "no task is accepted from parent"
    )
    assert "add --mem" in refusal(rules.acceptance.judge(request(tdv(est_time=60)))).text
    licensed = tdv(mem=1, est_time=1, origin="x.org", licence="full")
    assert not refusal(rules.acceptance.judge(request(licensed))).is_final
    assert (rules.timeouts.input_ns, rules.timeouts.lease_ns) == (3 * MINUTE, 5 * MINUTE)


def test_the_desktop_lends_at_night_only() -> None:
    rules = policy(DESKTOP)
    asked = request(tdv(mem=1, est_time=1), relation=Relation.PARENT)
    assert refusal(rules.acceptance.judge(asked)).text == "lent at night only"
    assert (rules.timeouts.update_period_ns, rules.update) == (MINUTE, key_changes(2000))


def test_the_hosting_site_knows_its_partner() -> None:
    rules = policy(HOSTING)
    partner = request(tdv(account="acme-2031", mem=1), system="acme.example", relation=Relation.SIBLING)
    # What is undefined never lets anybody in.
    assert refusal(rules.acceptance.judge(partner)).text == "no credit left"
    assert rules.acceptance.judge(request(tdv(est_time=60))) == Accepted()
    assert rules.acceptance.judge(request(tdv(est_time=7200, bid=20))) == Accepted()
    assert not refusal(rules.acceptance.judge(request(tdv(est_time=7200)))).is_final
    assert (rules.timeouts.input_ns, rules.timeouts.request_ns) == (90 * SECOND, 500 * MILLISECOND)
