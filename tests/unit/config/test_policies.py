"""Policy files on disk: an unreadable file is reported like any other problem."""

from pathlib import Path

import pytest

from messiahs.config.policies import read_policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.instants import SECOND
from messiahs.errors import PolicyError
from messiahs.language.syntax.problems import Code


def test_a_policy_is_read_with_the_timeouts_that_it_need_not_say(tmp_path: Path) -> None:
    file = tmp_path / "a.policy"
    file.write_text('policy "é" version 1;\ntimeouts { request 1s; }\n')
    rules = read_policy(file, timeouts=Timeouts(update_period_ns=SECOND))
    assert (rules.name, rules.timeouts.update_period_ns, rules.timeouts.request_ns) == ("é", SECOND, SECOND)


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"# \xc3\xa9\xff", "1:4", "this file is not UTF-8"),
        (b"# x\n\xff", "2:1", "this file is not UTF-8"),
        (b"#" * 300_000, "1:1", "longer than"),
        (b"foo;", "1:1", "`foo` does not begin a block"),
    ],
)
def test_a_mistake_has_the_name_of_its_file(tmp_path: Path, content: bytes, place: str, message: str) -> None:
    file = tmp_path / "a.policy"
    file.write_bytes(content)
    with pytest.raises(PolicyError) as raised:
        read_policy(file)
    (problem,) = raised.value.problems
    assert str(problem).startswith(f"{file}:{place}: error[")
    assert message in problem.message


def test_a_missing_file_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        read_policy(tmp_path / "missing.policy")


def test_a_file_that_is_too_long_is_reported_although_it_is_cut_within_a_character(tmp_path: Path) -> None:
    file = tmp_path / "long.policy"
    file.write_bytes(b"#" + "\N{EURO SIGN}".encode() * (256 << 10))
    with pytest.raises(PolicyError) as raised:
        read_policy(file)
    assert [problem.code for problem in raised.value.problems] == [Code.LIMIT]
