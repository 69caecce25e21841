"""MESSIAHS 5.4, the extension mechanism: a test for each statement about predicates and the task filter."""

import pytest

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate

EXAMPLE = '($avail_mem >= 4000000) and ($cpu eq "sparc")'


def _holds(text: str, **description: Value) -> bool:
    return parse_predicate(text).holds(description)


def test_users_append_pairs_of_variable_and_value_and_a_predicate_speaks_of_them() -> None:
    sdv = SDV(sorted_pairs({"avail_mem": 8_000_000, "vector_units": 4}))
    assert parse_predicate("$vector_units >= 2").holds(sdv.description())


def test_the_result_of_a_predicate_is_a_boolean() -> None:
    assert _holds("$a = 1", a=1) is True
    assert _holds("$a = 1", a=2) is False


def test_there_are_two_basic_types_strings_and_integers() -> None:
    assert _holds('$name eq "nyx" and $size = 3', name="nyx", size=3)
    for neither in ("1.5", "true", "'nyx'"):
        with pytest.raises(PredicateError):
            parse_predicate(f"$a = {neither}")


def test_parentheses_group() -> None:
    assert not _holds("$no = 1 and $no = 1 or $yes = 1 and $no = 1", yes=1, no=0)
    assert not _holds("$no = 1 and ($no = 1 or $yes = 1)", yes=1, no=0)
    assert _holds("$no = 1 and $no = 1 or $yes = 1", yes=1, no=0)


@pytest.mark.parametrize("true", ["1 < 2", "2 > 1", "2 = 2", "1 <= 1", "1 >= 1", "1 <> 2"])
def test_six_comparators_compare_integers(true: str) -> None:
    assert _holds(true)
    assert not _holds(f"not {true}")


@pytest.mark.parametrize(
    "true", ['"a" eq "a"', '"b" gr "a"', '"a" ls "b"', '"a" le "a"', '"a" ge "a"', '"a" ne "b"', '"10" ls "9"']
)
def test_six_comparators_compare_strings(true: str) -> None:
    assert _holds(true)
    assert not _holds(f"not {true}")


@pytest.mark.parametrize(
    ("left", "right", "conjunction", "disjunction", "exclusion"),
    [(0, 0, False, False, False), (0, 1, False, True, True), (1, 0, False, True, True), (1, 1, True, True, False)],
)
def test_the_logical_operators_are_and_or_not_xor(
    left: int, right: int, *, conjunction: bool, disjunction: bool, exclusion: bool
) -> None:
    assert _holds("$l = 1 and $r = 1", l=left, r=right) is conjunction
    assert _holds("$l = 1 or $r = 1", l=left, r=right) is disjunction
    assert _holds("$l = 1 xor $r = 1", l=left, r=right) is exclusion
    assert _holds("not $l = 1", l=left) is (left == 0)


def test_the_name_of_a_variable_begins_with_a_dollar_sign() -> None:
    assert _holds('$cpu eq "sparc"', cpu="sparc")
    with pytest.raises(PredicateError):
        parse_predicate('cpu eq "sparc"')


@pytest.mark.parametrize(
    ("avail_mem", "cpu", "expected"),
    [(4_000_000, "sparc", True), (3_999_999, "sparc", False), (4_000_000, "vax", False)],
)
def test_the_example_of_the_paper(avail_mem: int, cpu: str, *, expected: bool) -> None:
    assert _holds(EXAMPLE, avail_mem=avail_mem, cpu=cpu) is expected


def test_a_predicate_may_mix_fixed_fields_and_appended_ones() -> None:  # footnote 4
    assert parse_predicate(EXAMPLE).unset_in({"avail_mem": 1}) == ("cpu",)


def test_the_mechanism_is_the_same_for_systems_and_for_tasks() -> None:
    predicate = parse_predicate("$mem <= 100")
    pairs = sorted_pairs({"mem": 64})
    assert predicate.holds(SDV(pairs).description())
    assert predicate.holds(TDV(pairs).description())


def test_a_sched_request_is_judged_by_the_local_predicate_over_the_received_task_description() -> None:
    local = parse_predicate("$mem <= 100 and $est_time <= 3600")
    assert local.holds(TDV(sorted_pairs({"mem": 64, "est_time": 60})).description())
    assert not local.holds(TDV(sorted_pairs({"mem": 128, "est_time": 60})).description())


def test_a_task_request_is_judged_by_the_received_predicate_over_each_available_task() -> None:
    received = parse_predicate("$mem <= 100")
    available = {"small": {"mem": 64}, "large": {"mem": 128}, "silent": {"est_time": 60}}
    assert [name for name, tdv in available.items() if received.holds(tdv)] == ["small"]


def test_every_occurrence_of_a_variable_is_filled_in_from_the_description() -> None:
    assert _holds("$low <= $x and $x <= $high and $x <> 5", low=1, x=4, high=9)
    assert not _holds("$low <= $x and $x <= $high and $x <> 5", low=1, x=5, high=9)


def test_a_name_inside_a_string_is_no_variable() -> None:
    assert _holds('$cpu ne "$cpu"', cpu="sparc")


def test_variables_are_filled_in_before_anything_is_evaluated() -> None:
    # The first term alone would decide; the second is filled in all the same.
    assert not _holds("1 = 1 or $unset = 1")
    assert not _holds("1 = 1 or not (1 = 2 and $unset = 1)")


@pytest.mark.parametrize("text", ["$unset = 1", "$unset <> 1", "not $unset = 1", "$unset = 1 xor 1 = 1"])
def test_an_uninitialised_field_makes_the_predicate_false(text: str) -> None:
    assert not _holds(text)
    assert parse_predicate(text).unset_in({}) == ("unset",)


def test_a_field_that_has_no_value_of_the_compared_type_is_not_initialised() -> None:
    assert not _holds("not $cpu = 1", cpu="sparc")
