"""What Python users write as options of a task and as its command, right and wrong."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest

from messiahs.client.task_options import TaskOptions, checked_age, checked_command, checked_options
from messiahs.errors import ClientError


def checked(given: Mapping[str, object]) -> dict[str, object]:
    return dict(checked_options(cast("TaskOptions", given)))


def test_numbers_that_are_whole_are_integers_whatever_their_type() -> None:
    numpy = pytest.importorskip("numpy")
    given = {"mem": 64e6, "disk": numpy.int64(5), "time": numpy.float32(3), "deadline": Fraction(8, 2)}
    assert checked(given) == {"mem": 64_000_000, "disk": 5, "time": 3, "deadline": 4}
    assert checked({"priority": numpy.int8(-5), "uses": {"gpus": numpy.uint(2)}}) == {
        "priority": -5,
        "uses": {"gpus": 2},
    }
    assert {type(value) for value in checked(given).values()} == {int}


def test_texts_with_units_are_bytes_and_seconds_and_none_states_nothing() -> None:
    given = {"mem": "2KiB", "time": "15min", "disk": None, "gpus": None, "deadline": 0}
    assert checked(given) == {"mem": 2_048, "time": 900, "deadline": 0}


def test_paths_are_texts() -> None:
    assert checked({"outputs": [Path("a/b"), "c"], "env": {"HERE": Path("/x")}}) == {
        "outputs": ["a/b", "c"],
        "env": {"HERE": "/x"},
    }
    assert checked({"attributes": {"n": 2.0, "t": "x"}}) == {"attributes": {"n": 2, "t": "x"}}
    assert checked_command([Path("/bin/echo"), "x"]) == ("/bin/echo", "x")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"time": 1.5}, r"`time` is a whole number from 1, not 1.5 \(float\)"),
        ({"deadline": 1.5}, "`deadline` is a whole number from 0, not 1.5"),
        ({"time": float("nan")}, "`time` is a whole number from 1, not nan"),
        ({"mem": float("inf")}, "`mem` is a whole number from 1, not inf"),
        ({"deadline": -1}, r"`deadline` is a whole number from 0, not -1 \(int\)"),
        ({"retries": -1}, r"`retries` is a whole number from 0 to 1000, not -1 \(int\)"),
        ({"retries": 1_001}, "`retries` is a whole number from 0 to 1000, not 1001"),
        ({"cpus": 0}, "`cpus` is a whole number from 1, not 0"),
        ({"cpus": 2**63}, "`cpus` is a whole number from 1, not 9223372036854775808"),
        ({"gpus": -1}, "`gpus` is a whole number from 1 to 256, not -1"),
        ({"gpus": 257}, "`gpus` is a whole number from 1 to 256, not 257"),
        ({"uses": {"licences": 0}}, r"`uses\['licences'\]` is a whole number from 1 to 256, not 0"),
        ({"priority": 101}, "`priority` is a whole number from -100 to 100, not 101"),
        ({"priority": -101.0}, "`priority` is a whole number from -100 to 100, not -101.0"),
        ({"mem": "4G"}, "`mem`: `4G` is not a size: write 4GiB"),
        ({"time": "5 parsecs"}, "`time`: `5 parsecs` is not a duration: write 90s, 15min or 2d"),
        ({"mem": 0}, "`mem` is a whole number from 1, not 0"),
        ({"time": "0s"}, "`time`: `0s` is not more than 0: leave it out"),
        ({"disk": "0B"}, "`disk`: `0B` is not more than 0: leave it out"),
        ({"attributes": {"size": 2.5}}, r"`attributes\['size'\]` is a whole number, not 2.5"),
        ({"name": "a\udc80b"}, r"`name` is not UTF-8: a\\udc80b"),
        ({"env": {"A": "\udc80"}}, r"`env\['A'\]` is not UTF-8"),
        ({"env": {"A B": "3"}}, "`env`: `A B` names no variable: a name has no blanks, `=` or `#`"),
        ({"key": ""}, "`key` is empty, so a repeated submit would be another task"),
        ({"env": {"": "3"}}, "`env`: `` names no variable"),
        ({"env": {"A#": "3"}}, "`env`: `A#` names no variable"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused_with_the_name_of_its_option(given: TaskOptions, text: str) -> None:
    with pytest.raises(ValueError, match=text) as raised:
        checked_options(given)
    assert isinstance(raised.value, ClientError)
    assert raised.value.code == ClientError.USAGE


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"memory": 1}, "no option `memory`; those are mem, disk"),
        ({"cpus": True}, r"`cpus` is a whole number from 1, not True \(bool\)"),
        ({"priority": "high"}, r"`priority` is a whole number from -100 to 100, not 'high' \(str\)"),
        ({"env": {"A": 1}}, r"`env\['A'\]` is a text, not 1 \(int\)"),
        ({"env": [("A", "1")]}, "`env` has values by their names"),
        ({"uses": {"gpus": None}}, r"`uses\['gpus'\]` is a whole number from 1 to 256, not None"),
        ({"attributes": {"n": [1]}}, r"`attributes\['n'\]` is a text or a whole number, not \[1\]"),
        ({"name": 5}, r"`name` is a text, not 5 \(int\)"),
        ({"after": "left.1"}, "`after` is a list of texts, not one text"),
        ({"after": [1]}, r"one of `after` is a text, not 1 \(int\)"),
        ({"outputs": 3}, r"`outputs` is a list of texts, not 3 \(int\)"),
        ({"waits": "no"}, "`waits` is True or False, not 'no'"),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused_with_the_name_of_its_option(given: TaskOptions, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        checked_options(given)


def test_a_command_has_words() -> None:
    with pytest.raises(TypeError, match=r"a word of the command is a text, not 5 \(int\)"):
        checked_command(["sleep", 5])
    with pytest.raises(TypeError, match="a command is a list of words"):
        checked_command("sleep 5")
    with pytest.raises(ClientError, match="a word of the command is not UTF-8"):
        checked_command(["echo", "\udc80"])
    with pytest.raises(ValueError, match="the command has no word: name a program and its arguments, as in") as raised:
        checked_command([])
    assert isinstance(raised.value, ClientError)


def test_an_age_is_a_number_of_seconds_or_a_duration() -> None:
    assert (checked_age("since", 90), checked_age("since", "90min")) == (90.0, 5400)
    with pytest.raises(ValueError, match="`since`: `tomorrow` is not a duration") as caught:
        checked_age("since", "tomorrow")
    assert isinstance(caught.value, ClientError)
    with pytest.raises(TypeError, match="`older_than` is a number of seconds"):
        checked_age("older_than", b"2d")
