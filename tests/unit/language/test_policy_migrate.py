"""The block `migrate`: when other systems are asked for which tasks, and which tasks are offered."""

from collections.abc import Mapping

import pytest

from messiahs.core.interface.policies import Asking, HereQuery, RunningQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import MINUTE
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import NOON, machines, policy
from tests.unit.language.test_policy_examples import DEPARTMENT


def _ask(rule: str, before: str = "") -> Asking:
    (ask,) = policy(f"{before} migrate {{ {rule} }}").transfer.asks
    return ask


def _here(here: Mapping[str, Value] | None = None, *, subtree: Vector = EMPTY, has_machine: bool = True) -> HereQuery:
    return HereQuery(here=here or {}, has_machine=has_machine, subtree=IndexedVector(subtree), now=NOON)


def _task(**said: Value) -> RunningQuery:
    return RunningQuery(task=said, here={"load": 100}, now=NOON)


def test_an_ask_states_when_how_often_and_which_tasks() -> None:
    ask = _ask("ask every 1min when $here.load < 25% wanting { $mem <= 16000000000 };")
    assert (ask.every_ns, ask.wanting) == (MINUTE, "$mem <= 16000000000")
    assert ask.is_wanted(_here({"load": 2499}))
    assert not ask.is_wanted(_here({"load": 2500}))
    assert not ask.is_wanted(_here())


def test_a_wanted_task_is_evaluated_like_every_predicate() -> None:
    text = "migrate { ask every 1s when $load < 25% wanting { $cpus >= 0 or $mem < 1GiB }; }"
    (warning,) = policy(text).warnings
    assert (warning.code, warning.column) == (Code.ALWAYS_TRUE, 51)


def test_in_an_ask_an_unscoped_attribute_is_the_own_systems() -> None:
    assert _ask("ask every 1s when $load < 25% wanting { };").is_wanted(_here({"load": 1}))


def test_a_system_without_a_machine_asks_if_one_of_its_subtree_may_need_tasks() -> None:
    ask = _ask("ask every 1s when $here.load < 25% and $here.waiting = 0 wanting { };")
    subtree = machines({"load": 9000, "free_slots": 1}, {"load": 100, "free_slots": 2})
    assert ask.is_wanted(_here({"waiting": 0}, subtree=subtree, has_machine=False))
    assert not ask.is_wanted(_here({"waiting": 1}, subtree=subtree, has_machine=False))
    busy = machines({"load": 9000})
    assert not ask.is_wanted(_here({"waiting": 0}, subtree=busy, has_machine=False))


@pytest.mark.parametrize(
    ("written", "travels"),
    [
        ("", ""),
        ("$mem <= 4GiB", "$mem <= 4294967296"),
        ("$est_time >= 10min and $cpus = 1", "$est_time >= 600 and $cpus = 1"),
        ('$user in ("ann", "bob") and $cpus = 1', '($user eq "ann" or $user eq "bob") and $cpus = 1'),
        ("$cpus in (1)", "$cpus = 1"),
        ("not ($cpus = 1 or $cpus = 2) xor $gpus > 0", "not ($cpus = 1 or $cpus = 2) xor $gpus > 0"),
        ("1 = $cpus", "1 = $cpus"),
    ],
)
def test_wanted_tasks_are_sent_in_the_papers_language(written: str, travels: str) -> None:
    ask = _ask(f"ask every 1s when 1 = 1 wanting {{ {written} }};", "attribute $gpus int optional;")
    assert ask.wanting == travels
    assert parse_predicate(ask.wanting).text == travels


def test_one_true_offer_is_enough_and_an_undefined_one_offers_nothing() -> None:
    rules = policy("migrate { offer when $task.ran < 10min; offer when $waited > 1h and $here.load < 50%; }").transfer
    assert rules.offers(_task(ran=599))
    assert rules.offers(_task(ran=600, waited=3601))
    assert not rules.offers(_task(ran=600, waited=3600))
    assert not rules.offers(_task())


def test_without_an_offer_everything_is_offered_and_without_the_block_nothing() -> None:
    assert policy("migrate { }").transfer.offers(_task())
    assert not policy("").transfer.offers(_task(ran=0))
    assert policy("").transfer.asks == ()


def test_the_stated_number_of_tasks_is_kept() -> None:
    assert policy("migrate { keep at least 3 tasks; }").transfer.keep_at_least == 3
    assert policy("migrate { }").transfer.keep_at_least == 0


def test_the_department_shares_its_load() -> None:
    rules = policy(DEPARTMENT).transfer
    assert [ask.wanting for ask in rules.asks] == ["$mem <= 16000000000 and $est_time >= 600"]
    assert rules.keep_at_least == 1
    assert rules.offers(_task(ran=700, checkpointable=1))
    assert not rules.offers(_task(ran=700))


PROBLEMS = [
    ("migrate;", "1:8", Code.SYNTAX, "`migrate` needs a block"),
    ("migrate { } migrate { }", "1:13", Code.TWICE, "`migrate` occurs twice"),
    ("migrate { give when 1 = 1; }", "1:11", Code.SYNTAX, "`ask`, `keep` or `offer`"),
    ("migrate { offer when $peer.balance > 0s; }", "1:22", Code.SCOPE, "does not know $peer."),
    ("migrate { keep at least 1 tasks; keep at least 2 tasks; }", "1:34", Code.TWICE, "`keep` occurs twice"),
    ("migrate { keep at least -1 tasks; }", "1:25", Code.RANGE, "0 or more"),
    ("migrate { ask every 5 when 1 = 1 wanting { }; }", "1:21", Code.DIMENSION, "`5` is not a duration"),
    ("migrate { ask every 500ms when 1 = 1 wanting { }; }", "1:21", Code.RANGE, "once a second"),
    ("migrate { ask every 1s when $task.mem = 1 wanting { }; }", "1:29", Code.SCOPE, "`ask` does not know $task."),
    ("migrate { ask every 1s when 1 = 1; }", "1:34", Code.SYNTAX, "`wanting`"),
    ("migrate { ask every 1s when 1 = 1 wanting { $x = 1 }; }", "1:45", Code.UNKNOWN_ATTRIBUTE, "$x is not known"),
    ("migrate { ask every 1s when 1 = 1 wanting { $waited > 1s }; }", "1:45", Code.UNKNOWN_ATTRIBUTE, "$waited"),
    ("migrate { ask every 1s when 1 = 1 wanting { $here.load = 1% }; }", "1:45", Code.SCOPE, "`wanting` does not know"),
    ("migrate { ask every 1s when 1 = 1 wanting { $mem <= 5s }; }", "1:53", Code.DIMENSION, "size compared"),
    (
        "migrate { ask every 1s when 1 = 1 wanting { $mem default 1B = 1B }; }",
        "1:45",
        Code.NOT_OF_THE_PAPER,
        "`default`",
    ),
    ("migrate { ask every 1s when 1 = 1 wanting { has $mem }; }", "1:45", Code.NOT_OF_THE_PAPER, "`has`"),
    ('migrate { ask every 1s when 1 = 1 wanting { $user like "a*" }; }', "1:45", Code.NOT_OF_THE_PAPER, "`like`"),
    ("let a = $cpus = 1; migrate { ask every 1s when 1 = 1 wanting { a }; }", "1:64", Code.NOT_OF_THE_PAPER, "a `let`"),
]


@pytest.mark.parametrize(("text", "place", "code", "message"), PROBLEMS)
def test_each_mistake_is_reported_at_its_position(text: str, place: str, code: Code, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text, file="x.policy")
    (problem,) = [problem for problem in raised.value.problems if not problem.is_warning]
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code)
    assert message in problem.message


def test_a_predicate_that_is_too_long_when_expanded_is_a_mistake() -> None:
    names = ", ".join(f'"{"n" * 60}{number}"' for number in range(60))
    with pytest.raises(PolicyError, match="written out for others, the predicate is longer than 4096 bytes"):
        policy(f"migrate {{ ask every 1s when 1 = 1 wanting {{ $user in ({names}) }}; }}")
