"""The block `history`: what a policy keeps of the past, and where it may read it (MESSIAHS 5.1)."""

from dataclasses import replace

import pytest

from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.instants import DAY, HOUR, MINUTE
from messiahs.core.model.neighbors import Relation
from messiahs.core.model.series import HISTORY_LIMIT, Kept
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from tests.unit.language.policy_rig import Draws, candidate, policy, ranked, ranking
from tests.unit.language.trial_rig import came, trials

KEEPING = "history { keep $load over 10min; } "
NUMBERS = ("load", "nproc", "slots", "free_slots", "avail_mem", "total_mem", "speed", "queue_length", "wait_time")


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text, file="x.policy")
    return [(problem.code, problem.message) for problem in raised.value.problems if not problem.is_warning]


def test_each_attribute_is_kept_over_its_length_and_within_its_range() -> None:
    kept = "keep $load, $jobs over 10min; keep $avail_mem over 1h; keep $slots over 30d;"
    rules = policy(f"attribute $jobs int 0..50; history {{ {kept} }}")
    assert rules.histories == (
        Kept("load", 10 * MINUTE, low=0, high=10_000),
        Kept("jobs", 10 * MINUTE, low=0, high=50),
        Kept("avail_mem", HOUR, low=0, high=INTEGER_HIGHEST),
        Kept("slots", 30 * DAY, low=0, high=INTEGER_HIGHEST),
    )


@pytest.mark.parametrize(
    "rule",
    [
        "accept from any { require $here.load_mean < 50% and $peer.load_sd < 5%; limit 1 tasks; }",
        "let calm = $here.load_permanence >= 5min; accept from any { require calm; limit 1 tasks; }",
        "rank candidates by first where $cand.load_count >= 3, least $cand.load_mean, most $load_mean default 0%;",
        "rank tasks by first where $here.load_mean < 20%, most $priority;",
        "advertise every 1min { send $load_mean; set $willingness = 90 when $here.load_mean < 30% else 10; }",
        "running { suspend when $here.load_mean > 50%; resume unless $here.load_mean > 50%; }",
        "migrate { offer when $here.load_mean > 50%; ask every 1min when $here.load_mean < 5% wanting { }; }",
        "combine { $load_mean: drop; } reveal to parent { all except $load_mean; }",
    ],
)
def test_every_block_but_join_reads_histories_and_they_are_declared_wherever_the_block_is(rule: str) -> None:
    assert policy(KEEPING + rule).histories == policy(rule + KEEPING).histories


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("history { keep $os over 1h; }", "P203", "$os is a string, and has no mean"),
        ("history { keep $gone over 1h; }", "P201", "$gone is not known here"),
        ("history { keep $load over 1h; keep $load over 2h; }", "P302", "$load occurs twice in `history`"),
        (KEEPING + KEEPING, "P302", "`history` occurs twice"),
        (
            "history { keep $load, $load_mean over 1h; }",
            "P303",
            "$load_mean is part of a history, and has none of its own",
        ),
        ("history { keep $load over 500ms; }", "P206", "a history is one second long or more"),
        ("history { keep $load over 31d; }", "P206", "`31d` is too long"),
        ("history { keep $load over 4GiB; }", "P204", "`4GiB` is not a duration"),
        ("history { keep $load past 4h; }", "P106", "`,` or `over` is missing before `past`"),
        ("history { keep $here.load over 4h; }", "P202", "`history` does not know $here."),
        (
            "attribute $load_sd int; " + KEEPING,
            "P302",
            "the history of $load has $load_sd, which is declared",
        ),
        (
            KEEPING + "join { allow child when $peer.load_mean < 5%; }",
            "P201",
            "$peer.load_mean is never known in `join`",
        ),
        (KEEPING + "rank candidates by least $cand.slots_mean;", "P201", "$cand.slots_mean is not known here"),
        (KEEPING + "accept from any { require $task.load_mean < 5%; }", "P201", "$task.load_mean is not known here"),
        (KEEPING + "advertise every 2s { set $load_mean = 4; }", "P303", "$load_mean cannot be set by a policy"),
        (
            KEEPING + "accept from any { require $here.load_mean < 5min; }",
            "P204",
            "percentage compared with a duration",
        ),
    ],
)
def test_a_mistake_is_found(text: str, code: str, message: str) -> None:
    assert (code, message) in problems(text)


def test_a_long_name_cannot_have_a_history() -> None:
    name = "x" * 54
    (problem,) = problems(f"attribute ${name} int; history {{ keep ${name} over 1h; }}")
    assert problem == ("P105", f"the names of the history of ${name} have more than 64 characters")


def test_a_history_is_kept_of_few_attributes() -> None:
    text = ", ".join(f"${name}" for name in NUMBERS)
    assert len(NUMBERS) == HISTORY_LIMIT + 1
    assert problems(f"history {{ keep {text} over 1h; }}") == [
        ("P105", f"a history is kept of at most {HISTORY_LIMIT} attributes")
    ]


def test_a_history_that_is_not_kept_is_proposed() -> None:
    with pytest.raises(PolicyError, match=r"keep its history: history \{ keep \$slots over 1h; \}"):
        policy("accept from any { require $here.slots_mean > 2; }")


def test_a_candidate_without_a_history_comes_last() -> None:
    known = [replace(candidate(name), history=(("load_mean", mean),)) for name, mean in (("a", 900), ("c", 100))]
    rules = policy(KEEPING + "rank candidates by least $cand.load_mean;")
    assert ranked(rules, ranking(candidate("b"), *known), Draws()) == ("c", "a", "b")


def test_what_machines_send_of_their_history_is_read_over_classes() -> None:
    rules = policy("attribute $load_mean percent optional; rank candidates by least $load_mean;")
    busy, calm = candidate("busy", {"load_mean": 9_000}), candidate("calm", {"load_mean": 100})
    assert ranked(rules, ranking(busy, calm), Draws()) == ("calm", "busy")


PEER = 'peer { name = "cs"; } task { } '
TESTED = KEEPING + (
    'accept from any { require $here.load_mean < 50% else "busy"; limit 9 tasks; '
    'require $peer.load_sd default 0% < 10% else "unsteady"; } '
    "rank candidates by least $cand.load_mean; advertise every 2s { send $load_mean; }"
)


def test_tests_of_policies_know_the_history_of_what_they_state() -> None:
    steps = "here { load = 90%; } after 5min; here { load = 0%; } expect refuse; after 6min; expect accept;"
    assert came(PEER + steps, TESTED) == []
    assert came("here { load = 10%; } after 1min; expect send { load_mean = 10%; }", TESTED) == []


def test_no_time_passes_where_a_test_sets_its_clock() -> None:
    steps = "here { load = 90%; } after 1min; here { load = 20%; } at 2026-07-01 20:00; expect refuse;"
    assert came(PEER + steps, TESTED) == []


def test_tests_of_policies_state_the_history_of_peers_candidates_and_the_own_machine() -> None:
    steps = "here { load_mean = 10%; } expect accept; peer { load_sd = 20%; } expect refuse;"
    assert came(PEER + steps, TESTED) == []
    first = 'candidate "a" { load_mean = 50%; free_slots = 4; avail_mem = 1GiB; }'
    second = 'candidate "b" { load_mean = 5%; free_slots = 4; avail_mem = 1GiB; }'
    assert came(f'here {{ load = 0%; }} task {{ }} {first} {second} expect rank "b", "a";', TESTED) == []


def test_tests_of_policies_know_no_history_that_is_not_kept() -> None:
    with pytest.raises(PolicyError, match="`slots_mean` is not known here"):
        trials('test "t" { here { slots_mean = 1; } }', TESTED)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_history_of_a_peer_is_stated_whatever_its_relation(relation: Relation) -> None:
    steps = f'here {{ load_mean = 1%; }} peer {{ relation = "{relation}"; load_sd = 50%; }} expect refuse;'
    block = "accept from users { require $peer.load_sd < 10%; }"
    assert came(PEER + steps, TESTED + block) == []
