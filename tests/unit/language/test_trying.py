"""Results of the steps of a `*.policytest` file: each kind of expectation, met and not met."""

import pytest

from messiahs.language.explaining.coverage import rules_of, unseen_rules
from messiahs.language.policytest.execution import try_out
from tests.unit.language.policy_rig import policy
from tests.unit.language.trial_rig import came, outcome, trials

PARENT = 'peer { name = "cs"; relation = "parent"; }'

ACCEPT = """
let night = $now.clock >= 20:00 or $now.clock < 7:00 or $now.weekday >= 6;
accept from parent {
    require night else "at night only";
    require $mem <= 8GiB else "too large";
    when $here.load < 30%;
    limit 2 tasks;
    limit 1 tasks per $origin;
}
accept from users { require $user eq "ann"; limit 9 tasks; }
accept from any { require $peer.balance > 0 and $task.from eq "friend"; limit 9 tasks; }
"""
TOO_LARGE = 'it is refused with "too large"'
NIGHT = f"{PARENT} at 2026-11-18 22:30; task {{ mem = 4GiB; }} here {{ load = 5%; }}"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (f"{NIGHT} expect accept;", []),
        (f"{NIGHT} expect refuse;", [("expect refuse", "it is accepted")]),
        (f'{NIGHT} at 2026-11-18 12:00; expect refuse "at night only";', []),
        (f"{NIGHT} at 2026-11-21 12:00; expect accept;", []),
        (f'{PARENT} task {{ mem = 1B; }} here {{ load = 0%; }} expect refuse "at night only";', []),
        (
            f'{NIGHT} task {{ mem = 9GiB; }} expect accept; expect refuse "no";',
            [
                ("expect accept", 'it is refused with "too large"'),
                ('expect refuse "no"', 'it is refused with "too large"'),
            ],
        ),
        # What a sender is told of a missing field follows the text of the rule.
        (f'{NIGHT} task {{ mem = nothing; }} expect refuse "too large";', []),
        (
            f"{NIGHT} here {{ load = 40%; }} expect accept;",
            [("expect accept", "it is refused: refused_by_policy (when $here.load < 30%)")],
        ),
        (f'{NIGHT} placed 2 {{ origin = "ee"; }} expect refuse limit;', []),
        (f'{NIGHT} placed 1 {{ origin = "ee"; }} expect accept;', []),
        (f"{NIGHT} placed 1; expect refuse limit;", []),
        (
            f"{NIGHT} task {{ mem = 9GiB; }} expect refuse limit;",
            [("expect refuse limit", TOO_LARGE)],
        ),
        (f"{NIGHT} task {{ cpus = 3; }} expect refuse limit;", []),
        ('peer { relation = "self"; } task { user = "ann"; } expect accept;', []),
        ('peer { relation = "self"; } task { user = "bob"; } expect refuse;', []),
        ('peer { name = "friend"; relation = "sibling"; balance = 5s; } expect accept;', []),
        ('peer { name = "friend"; relation = "sibling"; balance = -5s; } expect refuse;', []),
        ('peer { name = "other"; relation = "sibling"; balance = 5s; } expect refuse;', []),
        ('peer { name = "friend"; relation = "sibling"; } expect refuse;', []),
    ],
)
def test_requests_are_accepted_and_refused_as_the_policy_would(steps: str, expected: list[tuple[str, str]]) -> None:
    assert came(steps, ACCEPT) == expected


def test_a_system_with_machines_below_and_none_of_its_own_is_evaluated_over_those() -> None:
    rule = "accept from parent { require $here.free_slots >= 4; limit 9 tasks; }"
    small, large = "machines 2 { free_slots = 2; }", "machines 1 { free_slots = 8; }"
    assert came(f"{PARENT} {small} {large} expect accept;", rule) == []
    assert came(f"{PARENT} {small} expect refuse;", rule) == []
    assert came(f"{PARENT} here {{ free_slots = 2; }} {large} expect refuse;", rule) == []


def test_a_failure_is_explained_by_all_rules_of_the_block() -> None:
    (failure,) = outcome(f"{NIGHT} task {{ mem = 9GiB; }} here {{ load = 40%; }} expect accept;", ACCEPT).failures
    (block,) = failure.blocks
    assert [(rule.text, rule.is_true) for rule in block.rules] == [
        ("require night", True),
        ("require $mem <= 8GiB", False),
        ("when $here.load < 30%", False),
        ("limit 2 tasks", True),
        ("limit 1 tasks per $origin", True),
    ]


ADVERTISE = """attribute $cpu string; attribute $secret int;
advertise every 1min { send $cpu; set $willingness = 90 - $load / 100 when $now.clock >= 20:00 else 5; }"""


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ('willingness = 80; cpu = "x"; secret = nothing;', None),
        ("willingness = 5;", "$willingness is 80"),
        ("cpu = nothing; load = 30%;", '$cpu is "x", $load is 10%'),
        ("secret = 1;", "$secret is not said"),
    ],
)
def test_advertised_attributes_are_expected_by_name(wanted: str, expected: str | None) -> None:
    here = 'at 2026-11-18 20:00; here { cpu = "x"; secret = 1; load = 10%; }'
    assert came(f"{here} expect send {{ {wanted} }}", ADVERTISE) == (
        [] if expected is None else [("expect send", expected)]
    )


def test_a_system_without_a_machine_advertises_nothing() -> None:
    steps = "here { tasks = 1; } machines 1 { load = 5%; } expect send { load = 5%; }"
    assert came(steps, ADVERTISE) == [("expect send", "this system has no machine that could say anything")]


RANK = 'rank candidates by first where $cand.relation eq "child", first where $os eq "Linux", least $load, random;'
CANDIDATES = """
    candidate "a" { relation = "parent"; machines 3 { os = "Linux"; load = 10%; free_slots = 1; } }
    candidate "b" { relation = "child"; os = "Darwin"; load = 90%; free_slots = 1; }
    candidate "c" { relation = "parent"; os = "Darwin"; load = 0%; free_slots = 1; }
    candidate "d" { relation = "sibling"; os = "Linux"; load = 10%; free_slots = 1; }
    candidate "full" { free_slots = 0; }
"""


def test_candidates_are_expected_in_the_order_in_which_they_are_asked() -> None:
    assert came(f'{CANDIDATES} expect rank "b", "a", "d", "c";', RANK) == []
    assert came(f'{CANDIDATES} expect rank "a", "b";', RANK) == [('expect rank "a", "b"', '"b", "a", "d", "c"')]
    assert came(f'task {{ cpus = 2; }} {CANDIDATES} expect rank "a";', RANK) == [('expect rank "a"', "nobody")]


def test_the_age_of_a_candidates_view_can_be_stated() -> None:
    stated = 'candidate "a" { free_slots = 1; age = 1min; } candidate "b" { free_slots = 1; }'
    assert came(f'{stated} expect rank "b", "a";', "rank candidates by least $cand.age;") == []


def test_the_balance_with_a_candidate_can_be_stated_and_one_without_a_balance_comes_last() -> None:
    stated = """
        candidate "a" { free_slots = 1; } candidate "b" { free_slots = 1; balance = -5h; }
        candidate "c" { free_slots = 1; balance = 3h; }
    """
    assert came(f'{stated} expect rank "c", "b", "a";', "rank candidates by most $cand.balance;") == []


def test_tasks_are_expected_in_the_order_in_which_they_get_places() -> None:
    tasks = 'task "a" { bid = 1; } task "b" { bid = 5; } task "c" { mem = 1B; }'
    rule = "attribute $bid int; rank tasks by first where has $mem, most $bid default 0;"
    assert came(f'{tasks} expect rank tasks "c", "b", "a";', rule) == []
    assert came(f'{tasks} expect rank tasks "a", "b", "c";', "attribute $bid int;") == []
    assert came(f'{tasks} expect rank tasks "a";', rule) == [('expect rank tasks "a"', '"c", "b", "a"')]


RUNNING = """
running {
    suspend unless $here.keyboard_idle >= 30s;
    resume when $here.keyboard_idle >= 5min for 1min;
    vacate when $task.suspended >= 10min grace 5min then kill;
}
running tasks where $task.mem default 0 > 1GiB { kill when $task.ran > 1h; }
"""
IDLE = "here { keyboard_idle = 20min; }"
BUSY = "here { keyboard_idle = 1s; }"
LARGE = "task { mem = 2GiB; }"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (f"{IDLE} expect nothing; after 2h; expect nothing;", []),
        (f"{IDLE} after 30s {{ {BUSY} }} expect suspend;", []),
        (f"{IDLE} expect suspend;", [("expect suspend", "what is done: nothing")]),
        (f"{IDLE} after 1s {{ here {{ keyboard_idle = nothing; }} expect suspend; }}", []),
        # `for` is counted from when the rule is first true, and acts on the way are done on the way.
        (f"{BUSY} expect suspend; {IDLE} after 59s; expect nothing; after 1s; expect resume;", []),
        (f"{BUSY} expect suspend; {IDLE} after 2min; expect resume;", []),
        (f"{BUSY} after 12min; expect suspend, vacate; after 3min; expect kill;", []),
        (f"{BUSY} after 20min; expect suspend, vacate, kill;", []),
        (f"{BUSY} after 20min; expect kill;", [("expect kill", "what is done: suspend, vacate, kill")]),
        # What was suspended and resumed is suspended anew, and its time counts from then.
        (f"{BUSY} after 5min; {IDLE} after 2min; {BUSY} after 9min; expect suspend, resume, suspend;", []),
        (f"{IDLE} {LARGE} after 59min; expect nothing; after 2min; expect kill; after 1d; expect nothing;", []),
        (f"{IDLE} {LARGE} task {{ ran = 2h; }} expect kill;", []),
        # It does not run while it is suspended.
        (f"{LARGE} {BUSY} after 5min; {IDLE} after 56min; expect suspend, resume; after 6min; expect kill;", []),
    ],
)
def test_acts_on_tasks_happen_when_they_are_due(steps: str, expected: list[tuple[str, str]]) -> None:
    assert came(steps, RUNNING) == expected


REVEAL = """attribute $cpu string;
reveal to parent { as "site"; only $arch, $free_slots; hide counts below 5; }
reveal to "friend" { all except $load; }
reveal to any nothing;
"""
BELOW = """
    machines 6 { arch = "x86_64"; free_slots = 4; load = 10%; }
    machines 2 { arch = "arm"; free_slots = 4; load = 10%; }
"""
FRIEND = 'peer { name = "friend"; relation = "sibling"; }'
STRANGER = 'peer { name = "other"; relation = "sibling"; }'


@pytest.mark.parametrize(
    ("steps", "is_met"),
    [
        (f'{PARENT} {BELOW} expect reveal as "site" {{ machines = 8; free_slots = 4; load = nothing; }}', True),
        (f"{PARENT} {BELOW} expect reveal {{ classes = 1; }}", True),
        (f"{PARENT} {BELOW} expect reveal {{ load = 10%; }}", False),
        (f'{PARENT} {BELOW} expect reveal as "other" {{ free_slots = 4; }}', False),
        (f"{PARENT} {BELOW} expect reveal nothing;", False),
        (f'{FRIEND} {BELOW} expect reveal {{ arch = "arm"; load = nothing; classes = 2; }}', True),
        (f"{FRIEND} {BELOW} expect reveal {{ free_slots = 5; }}", False),
        (f"{STRANGER} {BELOW} expect reveal nothing;", True),
        (f"{STRANGER} {BELOW} expect reveal {{ machines = 8; }}", False),
    ],
)
def test_revealed_attributes_are_expected_by_name(steps: str, is_met: bool) -> None:  # noqa: FBT001 - by name
    assert (came(steps, REVEAL) == []) is is_met


MIGRATE = """
migrate {
    offer when $task.ran < 10min;
    ask every 1min when $here.load < 25% wanting { $mem <= 16000000000 };
}
join { allow child when $peer.name like "*.cs" limit 2; }
"""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("task { ran = 5min; } expect offer;", []),
        ("task { ran = 15min; } expect keep;", []),
        ("task { ran = 15min; } expect offer;", [("expect offer", "it is kept")]),
        ("here { load = 10%; } expect ask;", []),
        ("here { load = 30%; } expect ask nothing;", []),
        ("machines 3 { load = 10%; } expect ask;", []),
        ("machines 3 { load = 50%; } expect ask;", [("expect ask", "nobody is asked")]),
        ('peer { name = "a.cs"; relation = "child"; } expect admit;', []),
        ('peer { name = "a.cs"; relation = "child"; } members 2; expect deny;', []),
        ('peer { name = "a.cs"; relation = "sibling"; } expect deny;', []),
        ('peer { name = "a.ee"; relation = "child"; } expect deny;', []),
        ('peer { name = "a.cs"; relation = "child"; } expect deny;', [("expect deny", "it may join")]),
    ],
)
def test_offers_asks_and_admissions_are_those_of_the_policy(steps: str, expected: list[tuple[str, str]]) -> None:
    assert came(steps, MIGRATE) == expected


def test_a_rule_is_covered_when_it_was_seen_true_and_false() -> None:
    rules = policy(ACCEPT + ADVERTISE + RANK + RUNNING + MIGRATE)
    assert [rule.text for rule in rules_of(rules)] == [
        "let night",
        "require night",
        "require $mem <= 8GiB",
        "when $here.load < 30%",
        "limit 2 tasks",
        "limit 1 tasks per $origin",
        'require $user eq "ann"',
        "limit 9 tasks",
        'require $peer.balance > 0 and $task.from eq "friend"',
        "limit 9 tasks",
        "set $willingness when $now.clock >= 20:00",
        'rank candidates by first where $cand.relation eq "child"',
        'rank candidates by first where $os eq "Linux"',
        "suspend unless $here.keyboard_idle >= 30s",
        "resume when $here.keyboard_idle >= 5min for 1min",
        "vacate when $task.suspended >= 10min grace 5min then kill",
        "running tasks where $task.mem default 0 > 1GiB",
        "kill when $task.ran > 1h",
        "offer when $task.ran < 10min",
        "ask every 1min when $here.load < 25% wanting { $mem <= 16000000000 }",
        'allow child when $peer.name like "*.cs" limit 2',
    ]
    steps = f"{NIGHT} expect accept; placed 2; expect refuse; at 2026-11-18 12:00; expect refuse;"
    unseen = unseen_rules(rules, outcome(steps, ACCEPT).seen)
    assert [(each.rule.text, each.never) for each in unseen[:4]] == [
        ("require $mem <= 8GiB", (False,)),
        ("when $here.load < 30%", (False,)),
        ('require $user eq "ann"', (True, False)),
        ("limit 9 tasks", (True, False)),
    ]


MOVING = """
    task { ran = 5min; } expect offer; task { ran = 15min; } expect keep;
    here { load = 10%; } expect ask; here { load = 50%; } expect ask nothing;
"""
ENTERING = 'peer { name = "a.cs"; relation = "child"; } expect admit; peer { name = "a.ee"; } expect deny;'
RANK_BIG = "let big = $free_slots > 4; rank candidates by first where big;"
BIG_AND_SMALL = 'candidate "a" { free_slots = 8; } candidate "b" { free_slots = 2; }'
HERE_BIG = "let big = $here.free_slots > 4; accept from parent { require big; limit 2 tasks; }"


@pytest.mark.parametrize(
    ("rules", "steps"),
    [
        (RANK, f'{CANDIDATES} expect rank "b", "a", "d", "c";'),
        (RUNNING, f"{IDLE} expect nothing; {BUSY} {LARGE} after 12min; {IDLE} after 1h;"),
        (MIGRATE, f"{MOVING} {ENTERING}"),
        (RANK_BIG, f'{BIG_AND_SMALL} expect rank "a", "b";'),
        (HERE_BIG, f"{PARENT} machines 2 {{ free_slots = 8; }} expect accept; placed 2; expect refuse;"),
    ],
)
def test_rules_of_every_kind_can_be_covered(rules: str, steps: str) -> None:
    more = f'test "u" {{ {PARENT} machines 2 {{ free_slots = 2; }} expect refuse; }}'
    first, second = try_out(trials(f'test "t" {{ {steps} expect nothing; }} {more}', rules))
    assert unseen_rules(policy(rules), first.seen | second.seen) == ()


@pytest.mark.parametrize(
    "steps",
    [
        "used 59min; expect accept;",
        "used 1h; expect refuse limit;",
        'used 5h { user = "eve"; } expect accept;',
        'task { user = "eve"; } used 30min { user = "eve"; } used 30min { user = "eve"; } expect refuse limit;',
    ],
)
def test_a_trial_states_what_was_used_today(steps: str) -> None:
    assert came(f"{PARENT} {steps}", "accept from any { limit 1h cpu per $user per day; }") == []
