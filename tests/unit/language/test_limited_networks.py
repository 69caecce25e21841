"""Limits of the network in `accept` blocks: what they say of accepted tasks, and what is wrong in them."""

from dataclasses import replace

import pytest

from messiahs.core.interface.policies import Accepted, Refused
from messiahs.core.model.neighbors import Relation
from messiahs.errors import PolicyError
from messiahs.language.runtime.accept_explanation import explain_accept
from messiahs.language.syntax.formatting import format_policy
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy, request, tdv

WORDS = "one of none, loopback, outbound, host"


def test_the_network_of_tasks_of_some_senders_is_limited() -> None:
    rules = policy(
        'accept from "leaf" { limit network to loopback; require $cpus <= 2; limit 9 tasks; }\n'
        'accept from children, users { limit network to none; as account "guests"; limit 9 tasks; }\n'
        "accept from any { limit 9 tasks; }"
    )
    assert rules.acceptance.judge(request()) == Accepted(network="loopback")
    assert isinstance(rules.acceptance.judge(request(tdv(cpus=3))), Refused)
    assert rules.acceptance.judge(request(system="other")) == Accepted(account="guests", network="none")
    assert rules.acceptance.judge(request(relation=Relation.SIBLING, system="other")) == Accepted()
    assert [(each.network, each.rule) for each in rules.acceptance.network_limits] == [
        ("loopback", "limit network to loopback"),
        ("none", "limit network to none"),
    ]


@pytest.mark.parametrize("network", ["none", "loopback", "outbound", "host"])
def test_words_for_networks_stay_names_for_everything_else(network: str) -> None:
    rules = policy(
        f"let {network} = $cpus = 1; let network = {network};\n"
        f"accept from any {{ require network; limit network to {network}; limit 9 tasks; }}"
    )
    assert rules.acceptance.judge(request(tdv(cpus=1))) == Accepted(network=network)


def test_a_limit_of_the_network_is_no_limit_of_tasks() -> None:
    (warning,) = policy("accept from any { limit network to none; }").warnings
    assert "these senders may use every slot" in warning.message


def test_an_explanation_shows_the_network() -> None:
    (block,) = policy("accept from any { limit network to none; limit 9 tasks; }").acceptance.blocks
    explained = explain_accept(block, request())
    assert explained.verdict == "accepted"
    assert ("limit network to none", True) in [(rule.text, rule.is_true) for rule in explained.rules]


@pytest.mark.parametrize(
    ("limit", "column", "code", "message", "hint"),
    [
        ("nine tasks", 27, Code.SYNTAX, "a number or `network` is missing before `nine`", ""),
        (
            *("netwrok to none", 27, Code.SYNTAX),
            *("a number or `network` is missing before `netwrok`", "did you mean `network`?"),
        ),
        ("network to lopback", 38, Code.UNKNOWN_NAME, "`lopback` is not a network", "did you mean `loopback`?"),
        ("network to x", 38, Code.UNKNOWN_NAME, "`x` is not a network", WORDS),
        ("network none", 35, Code.SYNTAX, "`to` is missing before `none`", ""),
        *(
            (f"network to {word}", 38, Code.SYNTAX, f"a network is missing before `{word}`", WORDS)
            for word in ("0", "nothing", "all", "any", '"none"')
        ),
        ("network to", 37, Code.SYNTAX, "a network is missing before `;`", WORDS),
        (
            *("network to none; limit network to host", 50, Code.TWICE),
            *("the network of these senders' tasks is limited already", "remove one of them"),
        ),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_its_remedy(
    limit: str, column: int, code: Code, message: str, hint: str
) -> None:
    with pytest.raises(PolicyError) as raised:
        policy(f"accept from users {{ limit {limit}; }}")
    (problem,) = raised.value.problems
    assert (problem.line, problem.column, problem.code) == (1, column, code.value)
    assert (problem.message, problem.hint) == (message, hint)


@pytest.mark.parametrize("limit", ["nine tasks", "netwrok to none", "network none", "network"])
def test_formatting_and_loading_find_the_same_syntax_error(limit: str) -> None:
    text = f"accept from users {{ limit {limit}; }}"
    with pytest.raises(PolicyError) as loaded:
        policy(text)
    with pytest.raises(PolicyError) as formatted:
        format_policy(text, file="site.policy")
    assert [replace(each, file="") for each in formatted.value.problems] == [
        replace(each, file="") for each in loaded.value.problems
    ]
