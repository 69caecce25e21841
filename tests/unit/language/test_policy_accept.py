"""The blocks `accept from ...`: which block decides, which refusals are final, and their texts."""

from dataclasses import replace

import pytest

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, AcceptQuery, Asker, Placed, Refused, Used
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.errors import PolicyError
from messiahs.language.runtime.accept_explanation import explain_accept
from tests.unit.language.policy_rig import NOON, finality, machines, policy, refusal, request, sdv, tdv

BY_PEER = """
accept from any { require $cpus = 1 else "any"; limit 9 tasks; }
accept from children, parent { require $cpus = 2 else "relation"; limit 9 tasks; }
accept from "leaf" { require $cpus = 3 else "name"; limit 9 tasks; }
"""


@pytest.mark.parametrize(
    ("system", "relation", "cpus"),
    [
        ("other", Relation.SIBLING, 1),
        ("other", Relation.CHILD, 2),
        ("other", Relation.PARENT, 2),
        ("leaf", Relation.CHILD, 3),
        ("leaf", Relation.SIBLING, 3),
    ],
)
def test_the_block_that_matches_the_sender_most_closely_decides(system: str, relation: Relation, cpus: int) -> None:
    rules = policy(BY_PEER)
    accepted = [
        n
        for n in (1, 2, 3)
        if rules.acceptance.judge(request(tdv(cpus=n), system=system, relation=relation)) == Accepted()
    ]
    assert accepted == [cpus]


@pytest.mark.parametrize(
    ("relation", "rule"),
    [
        (Relation.CHILD, "accept from children"),
        (Relation.SIBLING, "accept from siblings"),
        (Relation.PARENT, "accept from parent"),
    ],
)
def test_without_a_block_for_it_a_neighbor_is_refused_for_good(relation: Relation, rule: str) -> None:
    refused = refusal(policy('accept from "other" { limit 9 tasks; }').acceptance.judge(request(relation=relation)))
    assert (refused.rule, refused.text) == (rule, f"no task is {rule.replace('accept', 'accepted')}")
    assert finality(refused) == (DenyCode.REFUSED_BY_POLICY, True)


FOR_ALL = """
accept from "leaf" { require $cpus <= 8; limit 9 tasks; }
accept { require $mem default 0 <= 2GiB else "too large"; require $cpus <= 4 else "too wide"; }
accept from any { limit 9 tasks; }
accept from users { }
"""


@pytest.mark.parametrize(
    ("system", "relation"), [("leaf", Relation.CHILD), ("other", Relation.SIBLING), ("here", Relation.SELF)]
)
def test_what_is_required_without_senders_is_required_in_every_block(system: str, relation: Relation) -> None:
    judge = policy(FOR_ALL).acceptance.judge
    assert judge(request(tdv(cpus=4), system=system, relation=relation)) == Accepted()
    for stated, text in ((tdv(cpus=5), "too wide"), (tdv(cpus=8, mem=3 << 30), "too large")):
        refused = refusal(judge(request(stated, system=system, relation=relation)))
        assert (refused.text, refused.is_final) == (text, True)


def test_what_is_required_without_senders_comes_first_and_admits_nobody() -> None:
    judge = policy(FOR_ALL.replace("<= 8;", "<= 1;")).acceptance.judge
    assert refusal(judge(request(tdv(cpus=5)))).text == "too wide"
    assert refusal(judge(request(tdv(cpus=4)))).rule == "require $cpus <= 1"
    nobody = policy("accept { require $cpus = 1; } accept from users { }").acceptance.judge(request())
    assert refusal(nobody).rule == "accept from children"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("accept { limit 1 tasks; }", r":1:10: .*`limit` needs senders"),
        ("accept { when $cpus = 1; }", r":1:10: .*`when` needs senders"),
        ("accept { } accept { }", r":1:12: .*`accept` occurs twice"),
    ],
)
def test_without_senders_a_block_only_requires_and_is_there_once(text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy(text)


def test_the_relation_of_a_request_is_that_of_its_peer() -> None:
    with pytest.raises(PolicyError, match=r"(?s)not known here.*write \$peer.relation"):
        policy('accept from any { require $relation eq "child"; limit 9 tasks; }')


def test_users_are_accepted_unless_their_own_block_refuses_them() -> None:
    users = request(relation=Relation.SELF, system="here")
    nobody = "{ require $cpus > 64; limit 9 tasks; }"
    assert policy("").acceptance.judge(users) == Accepted()
    assert policy(f'accept from any {nobody}\naccept from "here" {nobody}').acceptance.judge(users) == Accepted()
    assert isinstance(policy(f"accept from users {nobody}").acceptance.judge(users), Refused)


def test_a_false_requirement_refuses_for_good_with_its_rule_and_text() -> None:
    rules = policy(
        'accept from any { require $mem <= 8GiB  # not more\n  and $cpus = 1 else "too large"; limit 9 tasks; }'
    )
    assert rules.acceptance.judge(request(tdv(mem=9 << 30))) == Refused(
        code=DenyCode.REFUSED_BY_POLICY, rule="require $mem <= 8GiB and $cpus = 1", text="too large", is_final=True
    )


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        ("$mem <= 8GiB", "the task does not state $mem: add --mem"),
        ("$disk <= 8GiB", "the task does not state $disk: add --disk"),
        ("$est_time <= 1h", "the task does not state $est_time: add --time"),
        ("$gpus <= 1", "the task does not state $gpus: add --set gpus=..."),
        ("$task.gpus <= 1", "the task does not state $gpus: add --set gpus=..."),
        ("$name = 1", "the task's $name is not of type integer"),
        (
            "$mem <= 8GiB and $disk <= 8GiB",
            "the task does not state $disk: add --disk; the task does not state $mem: add --mem",
        ),
        ("$here.waiting = 0", ""),
    ],
)
def test_a_refusal_for_a_missing_field_states_how_to_add_it(predicate: str, text: str) -> None:
    declared = "attribute $gpus int; attribute $name int;"
    rules = policy(f"{declared} accept from any {{ require {predicate}; limit 9 tasks; }}")
    assert refusal(rules.acceptance.judge(request(tdv(name="x")))).text == text
    rules = policy(f'{declared} accept from any {{ require {predicate} else "so it is"; limit 9 tasks; }}')
    assert refusal(rules.acceptance.judge(request(tdv(name="x")))).text == "; ".join(
        ["so it is", text] if text else ["so it is"]
    )


def test_one_true_occasion_is_enough_and_none_refuses_this_system_only() -> None:
    rules = policy("accept from any { when $cpus = 1; when $cpus = 2; limit 9 tasks; }")
    assert [n for n in range(1, 5) if rules.acceptance.judge(request(tdv(cpus=n))) == Accepted()] == [1, 2]
    refused = refusal(rules.acceptance.judge(request(tdv(cpus=3))))
    assert finality(refused) == (DenyCode.REFUSED_BY_POLICY, False)
    assert refused.rule == "when $cpus = 1; when $cpus = 2"


def test_requirements_are_evaluated_before_occasions_and_both_before_limits() -> None:
    rules = policy("accept from any { limit 0 tasks; when $cpus = 1; require $cpus <= 2; }")
    answers = [finality(rules.acceptance.judge(request(tdv(cpus=n)))) for n in (1, 2, 3)]
    assert answers == [
        (DenyCode.LIMIT_REACHED, False),
        (DenyCode.REFUSED_BY_POLICY, False),
        (DenyCode.REFUSED_BY_POLICY, True),
    ]


def rule_of(answer: Accepted | Refused) -> str | None:
    """Return the limit that is reached; None if the task is accepted."""
    if isinstance(answer, Accepted):
        return None
    assert finality(answer) == (DenyCode.LIMIT_REACHED, False)
    return answer.rule


@pytest.mark.parametrize(
    ("limit", "wanted", "text"),
    [
        ("2 tasks", 1, "all slots that are allowed are in use now"),
        ("2 slots per $user", 1, "all slots that are allowed per $user are in use now"),
        ("2 slots per $user", 3, "the task takes more slots than are allowed per $user"),
        ("1h cpu per day", 1, "the processor time that is allowed in one day is used up until midnight UTC"),
        (
            "1h cpu per $user per day",
            1,
            "the processor time that is allowed per $user in one day is used up until midnight UTC",
        ),
    ],
)
def test_the_text_of_a_limit_says_which_kind_it_is_without_its_number(limit: str, wanted: int, text: str) -> None:
    rules = policy(f"accept from any {{ limit {limit}; }}")
    asked = replace(request(placed=(_placed(2),), wanted_slots=wanted), used=(_used(1),))
    assert refusal(rules.acceptance.judge(asked)).text == text


def _placed(slots: int, **stated: Value) -> Placed:
    return Placed(tdv=tdv(**stated), slots=slots)


@pytest.mark.parametrize(
    ("placed", "wanted", "rule"),
    [
        ((), 1, None),
        ((), 4, None),
        ((), 5, "limit 4 tasks per $origin"),
        ((_placed(3),), 1, None),
        ((_placed(3),), 2, "limit 4 tasks per $origin"),
        ((_placed(2), _placed(2)), 1, "limit 4 tasks per $origin"),
        ((_placed(4, origin="ee.example"), _placed(1)), 3, None),
        ((_placed(4, origin="ee.example"), _placed(4, origin="me.example"), _placed(1)), 2, "limit 10 tasks"),
    ],
)
def test_limits_count_slots_in_all_and_by_attribute(placed: tuple[Placed, ...], wanted: int, rule: str | None) -> None:
    rules = policy("accept from any { limit 10 tasks; limit 4 tasks per $origin; }")
    answer = rules.acceptance.judge(request(placed=placed, wanted_slots=wanted))
    assert rule_of(answer) == rule


def test_slots_are_what_tasks_take() -> None:
    in_slots, in_tasks = (policy(f"accept from any {{ limit 4 {word} per $user; }}") for word in ("slots", "tasks"))
    for slots in (1, 4, 5):
        answers = [rules.acceptance.judge(request(wanted_slots=slots)) == Accepted() for rules in (in_slots, in_tasks)]
        assert answers == [slots < 5, slots < 5]


def _used(hours: int, *, user: str = "ann", origin: str = "cs.example", account: str = "", sink: str = "leaf") -> Used:
    sink_id, origin_id = SystemId(sink), SystemId(origin)
    return Used(sink=sink_id, origin=origin_id, user=user, account=account, used_ns=hours * HOUR)


@pytest.mark.parametrize(
    ("used", "rule"),
    [
        ((), None),
        ((_used(3), _used(20, user="bob")), None),
        ((_used(3), _used(1, origin="ee.example")), "limit 4h cpu per $user per day"),
        ((_used(4),), "limit 4h cpu per $user per day"),
        ((_used(15, user="bob"), _used(15, user="eve")), "limit 30h cpu per day"),
        # A user beyond those that the ledger tells apart shares what these use together.
        ((_used(4, user="", origin="leaf"),), "limit 4h cpu per $user per day"),
        ((_used(1), _used(4, user="", origin="leaf")), None),
        ((_used(4, user="", origin="other", sink="other"),), None),
    ],
)
def test_slot_time_of_a_day_is_limited_in_all_and_by_user(used: tuple[Used, ...], rule: str | None) -> None:
    rules = policy("accept from any { limit 30h cpu per day; limit 4h cpu per $user per day; }")
    answer = rules.acceptance.judge(replace(request(), used=used))
    assert rule_of(answer) == rule
    expected = "" if rule is None else rule
    assert rules.acceptance.why_refused(replace(request(), used=used)).startswith(expected)


def test_the_local_log_has_the_seconds_that_were_used() -> None:
    rules = policy("accept from any { limit 4h cpu per $user per day; }")
    why = rules.acceptance.why_refused(replace(request(), used=(_used(5),)))
    assert why == "limit 4h cpu per $user per day: 18000 of 14400 processor seconds used today"


@pytest.mark.parametrize("reads", [True, False])
def test_the_ledger_is_read_only_for_a_limit_that_needs_it(*, reads: bool) -> None:
    limit = "4h cpu per $user per day" if reads else "4 tasks per $user"
    assert policy(f"accept from any {{ limit {limit}; }}").acceptance.reads_usage is reads


def test_tasks_without_the_counted_attribute_count_together() -> None:
    rules = policy("attribute $account string; accept from any { limit 1 tasks per $account; }")
    assert rules.acceptance.judge(request(placed=(_placed(1, account="a"),))) == Accepted()
    assert rules.acceptance.judge(request(tdv(account="a"), placed=(_placed(1),))) == Accepted()
    assert isinstance(rules.acceptance.judge(request(placed=(_placed(1),))), Refused)


def _without_machine(subtree: Vector, **stated: Value) -> AcceptQuery:
    asker = Asker(system=request().asker.system, relation=Relation.CHILD)
    return AcceptQuery(tdv=tdv(**stated), asker=asker, here=None, subtree=IndexedVector(subtree), now=NOON)


@pytest.mark.parametrize(
    ("predicate", "is_accepted"),
    [
        ("$here.load < 30%", True),
        ("$here.load < 5%", False),
        ("not $here.load < 30%", True),
        ('$here.arch eq "sparc" and $here.load > 50%', True),
        ('$here.arch eq "sparc" and $here.load < 50%', False),
        ('$here.arch in ("sparc", "mips")', True),
        ('$here.arch like "m*"', False),
        ("$here.keyboard_idle > 10min", True),
        ("has $here.load and $here.load < 30%", True),
        ("$here.load < 30% and $mem <= 1GB", False),
        ("$here.load < 30% and $cpus = 1", True),
        ("$here.load < 30% and $cpus = 2", False),
    ],
)
def test_a_system_without_a_machine_asks_whether_one_of_its_subtree_could(predicate: str, *, is_accepted: bool) -> None:
    rules = policy(f"accept from any {{ require {predicate}; limit 9 tasks; }}")
    subtree = machines({"arch": "x86_64", "load": 2000}, {"arch": "sparc", "load": 9000})
    assert (rules.acceptance.judge(_without_machine(subtree)) == Accepted()) is is_accepted


def test_attributes_of_the_module_itself_are_not_looked_up_in_machines() -> None:
    rules = policy("accept from any { require $here.waiting < 3 and $here.load < 50%; limit 9 tasks; }")
    asked = _without_machine(machines({"load": 100}))
    assert rules.acceptance.judge(replace(asked, module={"waiting": 2, "tasks": 0})) == Accepted()
    assert refusal(rules.acceptance.judge(replace(asked, module={"waiting": 3, "tasks": 0})))


def test_an_empty_subtree_satisfies_nothing_but_other_conditions_still_hold() -> None:
    asks = policy("accept from any { require $here.load >= 0%; limit 9 tasks; }")
    assert isinstance(asks.acceptance.judge(_without_machine(EMPTY)), Refused)
    plain = policy("accept from any { require $cpus = 1; limit 9 tasks; }")
    assert plain.acceptance.judge(_without_machine(EMPTY)) == Accepted()


def test_a_machine_of_its_own_decides_instead_of_the_subtree() -> None:
    rules = policy("accept from any { require $here.load < 30%; limit 9 tasks; }")
    assert rules.acceptance.judge(request(here=sdv(load=2999))) == Accepted()
    assert isinstance(rules.acceptance.judge(request(here=sdv(load=3000))), Refused)


def test_tasks_of_some_senders_have_an_account_of_the_host_and_others_have_none() -> None:
    rules = policy(
        'accept from "leaf" { as account "physics"; require $cpus <= 2; limit 9 tasks; }\n'
        'accept from children, users { as account "guests"; limit 9 tasks; }\n'
        "accept from any { limit 9 tasks; }"
    )
    assert rules.acceptance.judge(request()) == Accepted(account="physics")
    assert isinstance(rules.acceptance.judge(request(tdv(cpus=3))), Refused)
    assert rules.acceptance.judge(request(system="other")) == Accepted(account="guests")
    assert rules.acceptance.judge(request(relation=Relation.SELF, system="here")) == Accepted(account="guests")
    assert rules.acceptance.judge(request(relation=Relation.SIBLING, system="other")) == Accepted()
    assert [(each.account, each.rule) for each in rules.acceptance.mappings] == [
        ("physics", 'as account "physics"'),
        ("guests", 'as account "guests"'),
    ]


def test_an_explanation_shows_the_account_and_the_local_log_of_a_refusal_does_not() -> None:
    rules = policy('accept from any { as account "physics"; require $cpus = 1; limit 9 tasks; }')
    (block,) = rules.acceptance.blocks
    explained = explain_accept(block, request())
    assert explained.verdict == "accepted"
    assert ('as account "physics"', True) in [(rule.text, rule.is_true) for rule in explained.rules]
    assert "physics" not in rules.acceptance.why_refused(request(tdv(cpus=2)))


@pytest.mark.parametrize("name", ["a", "_svc", "SITE\\\\ann", "ann@site.example", "x-1.y+z"])
def test_accounts_have_the_names_that_hosts_and_directories_give(name: str) -> None:
    rules = policy(f'accept from any {{ as account "{name}"; limit 9 tasks; }}')
    assert rules.acceptance.mappings[0].account == name.replace("\\\\", "\\")
