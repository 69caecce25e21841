"""On which lines the rules stand that have refused tasks."""

from messiahs.language.explaining.rule_places import rule_lines
from tests.unit.language.policy_rig import policy

POLICY = policy(
    """policy "placed" version 1;
# A comment
accept from parent {
    require $mem default 0
        < 2GiB else "small";
    when $cpus < 2;
    when $cpus > 8;
    limit 2 tasks;
}
accept from siblings {
    require $mem default 0 < 2GiB;
    limit 1h cpu per day;
}
"""
)


def test_a_rule_stands_where_it_begins_and_one_that_is_repeated_in_several_places() -> None:
    assert rule_lines(POLICY, "require $mem default 0 < 2GiB") == (4, 11)
    assert rule_lines(POLICY, "limit 2 tasks") == (8,)
    assert rule_lines(POLICY, "limit 1h cpu per day") == (12,)


def test_the_occasions_of_a_block_are_one_rule_on_several_lines() -> None:
    assert rule_lines(POLICY, "when $cpus < 2; when $cpus > 8") == (6, 7)


def test_what_is_not_in_the_file_stands_nowhere() -> None:
    assert rule_lines(POLICY, "accept from children") == ()
    assert rule_lines(POLICY, "") == ()
