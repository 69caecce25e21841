"""Machines of a pool that match a task, reasons why others do not, and the smallest change that helps."""

from collections.abc import Mapping

import pytest

from messiahs.core.interface.policies import AcceptQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.explaining.pool import Demand, demands_of, judge_pool, losses_in
from messiahs.language.explaining.relaxing import changes_for
from messiahs.language.runtime.class_explanation import Machines, machines_in
from messiahs.language.runtime.readings import request_facts
from tests.unit.language.policy_rig import NOON, machines, policy, request, tdv

GIB = 1 << 30
SMALL: Mapping[str, Value] = {"avail_mem": 4 * GIB, "load": 1024}
LARGE: Mapping[str, Value] = {"avail_mem": 16 * GIB, "load": 5120, "arch": "aarch64"}
POOL = IndexedVector(machines(SMALL, SMALL, SMALL, LARGE, LARGE, keys=("avail_mem",)))
assert POOL.vector.machines == 5


def _asked(
    rules: str, said: Mapping[str, Value], pool: IndexedVector = POOL
) -> tuple[tuple[Demand, ...], AcceptQuery, IndexedVector]:
    # Without a block users may have everything.
    asker = request(relation=Relation.CHILD if rules else Relation.SELF).asker
    query = AcceptQuery(tdv=tdv(**said), asker=asker, here=None, subtree=pool, now=NOON)
    accepting = policy(f"accept from any {{ {rules} limit 9 tasks; }}" if rules else "").acceptance
    return demands_of(accepting, asker), query, pool


def _matched(rules: str, **said: Value) -> str:
    demands, query, pool = _asked(rules, said)
    return str(machines_in(judge_pool(demands, request_facts(query), pool), pool))


def _losses(rules: str, **said: Value) -> list[tuple[str, str]]:
    demands, query, pool = _asked(rules, said)
    return [(loss.text, str(loss.machines)) for loss in losses_in(demands, request_facts(query), pool)]


def _changes(rules: str, **said: Value) -> list[tuple[str, str]]:
    demands, query, pool = _asked(rules, said)
    return [(change.text, str(change.machines)) for change in changes_for(demands, request_facts(query), pool)]


@pytest.mark.parametrize(
    ("rules", "said", "expected"),
    [
        ("", {}, "5"),
        ("", {"mem": 4 * GIB}, "5"),
        ("", {"mem": 8 * GIB}, "2"),
        ("", {"mem": 17 * GIB}, "0 to 2"),
        ("", {"mem": 99 * GIB}, "0"),
        ("", {"cpus": 99}, "0"),
        ("require $here.load < 30%;", {}, "3"),
        ("require $here.load < 30%; require $mem <= 8GiB;", {"mem": 4 * GIB}, "3"),
        ("require $here.load < 30%;", {"mem": 8 * GIB}, "0"),
        # One `when` is enough.
        ('when $here.load < 30%; when $here.arch eq "aarch64";', {}, "5"),
        ('when $here.load < 20% and $here.arch eq "aarch64"; when $mem = 1B;', {}, "0"),
        # What machines may have withheld could be anything.
        ("require $here.keyboard_idle > 5min;", {}, "0 to 5"),
        ("require $mem <= 8GiB;", {}, "0"),
    ],
)
def test_machines_match_if_they_have_room_and_the_rules_accept_the_task(
    rules: str, said: dict[str, Value], expected: str
) -> None:
    assert _matched(rules, **said) == expected


def test_each_part_of_the_rules_is_shown_with_the_machines_that_it_excludes() -> None:
    rules = 'require $here.load < 30% and $mem <= 8GiB; when $here.arch eq "x86_64"; when $here.load < 5%;'
    assert _losses(rules, mem=12 * GIB) == [
        ("$avail_mem >= $mem", "3"),
        ("$here.load < 30%", "2"),
        ("$mem <= 8GiB", "5"),
        ('($here.arch eq "x86_64") or ($here.load < 5%)', "2"),
    ]
    assert _losses("require $here.load < 99%;", mem=1) == []


@pytest.mark.parametrize(
    ("rules", "said", "expected"),
    [
        ("", {"mem": 8 * GIB}, [("$mem were at most 4GiB", "5")]),
        ("", {"mem": 99 * GIB}, [("$mem were at most 16GiB", "2")]),
        ("", {"cpus": 99}, [("$cpus were at most 8", "5")]),
        ("", {}, []),
        ("require $here.load < 30%;", {}, [("`$here.load < 30%` were `$here.load < 61.44%`", "5")]),
        ("require 30% > $here.load;", {}, [("`30% > $here.load` were `61.44% > $here.load`", "5")]),
        ("require not $here.load >= 30%;", {}, [("`$here.load >= 30%` were `$here.load >= 61.44%`", "5")]),
        ("require $mem <= 2GiB;", {"mem": 4 * GIB}, [("$mem were at most 2GiB", "5")]),
        ("require $mem < 2GiB;", {"mem": 4 * GIB}, [("$mem were at most 2147483647B", "5")]),
        ("require $mem <= 2GiB;", {}, [("$mem were 2GiB", "5")]),
        ("require $now.clock >= 20:00;", {}, [("$now.clock were at least 20:00", "5")]),
        ('require $user in ("bob", "eve");', {}, [('$user were "bob"', "5")]),
        (
            'require $here.arch eq "riscv";',
            {},
            [('`$here.arch eq "riscv"` were `$here.arch eq "x86_64"`', "3")],
        ),
        # Two things are against it, so no single change helps.
        ("require $mem <= 2GiB and $cpus = 2;", {"mem": 4 * GIB}, []),
    ],
)
def test_the_smallest_change_is_shown_with_the_machines_that_would_match(
    rules: str, said: dict[str, Value], expected: list[tuple[str, str]]
) -> None:
    assert _changes(rules, **said) == expected


def test_possible_and_certain_matches_are_distinguished() -> None:
    mixed = IndexedVector(machines({"avail_mem": 4 * GIB}, {"avail_mem": 16 * GIB}, keys=()))
    demands, query, pool = _asked("", {"mem": 8 * GIB}, mixed)
    assert machines_in(judge_pool(demands, request_facts(query), pool), pool) == Machines(surely=0, could=2)
    (loss,) = losses_in(demands, request_facts(query), pool)
    assert loss.machines == Machines(surely=0, could=2)
    (change,) = changes_for(demands, request_facts(query), pool)
    assert (change.text, change.machines) == ("$mem were at most 4GiB", Machines(surely=2, could=2))


@pytest.mark.parametrize(("relation", "senders"), [(Relation.SIBLING, "siblings"), (Relation.CHILD, "children")])
def test_a_sender_without_a_block_has_no_machine_and_no_change_helps(relation: Relation, senders: str) -> None:
    asker = request(relation=relation).asker
    demands = demands_of(policy("accept from parent { require $mem <= 1GiB; limit 9 tasks; }").acceptance, asker)
    facts = request_facts(AcceptQuery(tdv=tdv(mem=GIB), asker=asker, here=None, subtree=POOL, now=NOON))
    assert machines_in(judge_pool(demands, facts, POOL), POOL) == Machines(surely=0, could=0)
    (loss,) = losses_in(demands, facts, POOL)
    assert (loss.text, str(loss.machines)) == (f"a missing block: accept from {senders}", "5")
    assert changes_for(demands, facts, POOL) == ()
