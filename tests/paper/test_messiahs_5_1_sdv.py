"""MESSIAHS 5.1 and 5.2, what describes a system and a task: a test for each statement."""

from itertools import pairwise

import pytest

from messiahs.core.interface.policies import CalendarTime, Need
from messiahs.core.model.attributes import CATALOGUE, MACHINE_ATTRIBUTES, TASK_ATTRIBUTES, Kind, Value
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.instants import MINUTE
from messiahs.core.model.series import attributes_in_history
from messiahs.core.task_filter.matching import could_hold, has_room
from messiahs.core.vectors.buckets import bucket_of, highest_in, lowest_in
from messiahs.core.vectors.compaction import compact, encoded_size
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Interval, coalesce, vector_of
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.predicates import parse_predicate


def need(*, mem_bytes: int = 0, requirement: str = "") -> Need:
    predicate = parse_predicate(requirement) if requirement else parse_predicate("1 = 1")
    return Need(slots=1, mem_bytes=mem_bytes, disk_bytes=0, requirement=predicate)


@pytest.mark.parametrize("name", ["avail_mem", "total_mem"])
def test_5_1_the_vector_has_memory_available_and_in_total(name: str) -> None:
    assert name in MACHINE_ATTRIBUTES


@pytest.mark.parametrize("name", ["load", "queue_length", "wait_time", "utilization"])
def test_5_1_the_vector_has_the_load_as_queue_length_waiting_time_and_utilization(name: str) -> None:
    assert MACHINE_ATTRIBUTES[name].kind is Kind.INTEGER


@pytest.mark.parametrize("name", ["speed", "nproc", "comm_cost", "willingness"])
def test_5_1_the_vector_has_speed_processors_communication_costs_and_willingness(name: str) -> None:
    assert name in MACHINE_ATTRIBUTES


def test_5_1_the_classes_are_static_and_do_not_depend_on_what_was_seen() -> None:
    alone = vector_of(SDV((("speed", 700),)))
    (among_others,) = [
        each
        for each in coalesce([alone, vector_of(SDV((("speed", 9),)))], keys=("speed",)).classes
        if each in alone.classes
    ]
    assert among_others.attributes == (("speed", Interval(bucket_of(700), bucket_of(700))),)


def test_5_1_the_scale_is_logarithmic() -> None:
    widths = [highest_in(bucket) - lowest_in(bucket) + 1 for bucket in range(8, 200)]
    assert all(later == 2 * earlier for earlier, later in zip(widths, widths[4:], strict=False))
    assert all(one <= other for one, other in pairwise(widths))


def test_5_1_condensing_lets_the_description_expand_to_large_systems() -> None:
    def federation(size: int) -> int:
        machines = [vector_of(SDV((("avail_mem", number * number), ("speed", number)))) for number in range(size)]
        return encoded_size(compact(coalesce(machines), keys=("avail_mem", "speed")))

    assert federation(3000) <= 4096
    assert federation(3000) <= 2 * federation(300)


def test_5_1_special_services_are_said_by_extensions() -> None:
    vector = IndexedVector(vector_of(SDV((("vector_units", 4),))))
    assert "vector_units" not in MACHINE_ATTRIBUTES
    assert parse_predicate("$vector_units >= 4").over(vector) == (1, 1)
    assert parse_predicate("$vector_units >= 5").over(vector) == (0, 0)


def test_5_1_table_1_available_memory_is_compared_with_what_the_task_requires() -> None:
    here = {"free_slots": 1, "avail_mem": 4096, "avail_disk": 0}
    assert has_room(need(mem_bytes=4096), here)
    assert not has_room(need(mem_bytes=4097), here)


def test_5_1_the_vector_is_what_a_module_chooses_a_candidate_by() -> None:
    view = IndexedVector(vector_of(SDV(sorted_pairs({"free_slots": 1, "avail_mem": 1 << 30, "avail_disk": 0}))))
    assert could_hold(need(mem_bytes=1 << 30), view)
    assert not could_hold(need(mem_bytes=1 << 40), view)


@pytest.mark.parametrize("name", ["mem", "est_time", "origin", "comm_load"])
def test_5_2_the_task_vector_has_memory_run_time_origin_and_communication(name: str) -> None:
    assert name in TASK_ATTRIBUTES


def test_5_2_tasks_use_the_same_mechanism_of_extensions_as_systems() -> None:
    tdv = TDV(sorted_pairs({"cpus": 1, "origin": "blays", "user": "ada", "license": "matlab"}))
    assert parse_predicate('$license eq "matlab"').holds(tdv.description())


def test_5_2_whether_a_task_is_accepted_depends_on_its_vector_and_on_the_systems() -> None:
    here: dict[str, Value] = {"free_slots": 1, "avail_mem": 5000, "avail_disk": 0, "os": "Linux"}
    view = IndexedVector(vector_of(SDV(sorted_pairs(here))))
    assert could_hold(need(mem_bytes=4000, requirement='$os eq "Linux"'), view)
    assert not could_hold(need(mem_bytes=9000, requirement='$os eq "Linux"'), view)
    assert not could_hold(need(mem_bytes=4000, requirement='$os eq "SunOS"'), view)


def test_5_1_and_5_2_the_catalogue_describes_systems_and_tasks_and_nothing_else() -> None:
    assert len(CATALOGUE) == len(MACHINE_ATTRIBUTES | TASK_ATTRIBUTES)


@pytest.mark.parametrize("characteristic", ["permanence", "mean", "sd", "count"])
def test_5_1_a_history_has_the_characteristics_of_each_datum(characteristic: str) -> None:
    numbers = [each for each in MACHINE_ATTRIBUTES.values() if each.kind is Kind.INTEGER]
    for number in numbers:
        assert f"{number.name}_{characteristic}" in {each.name for each in attributes_in_history(number)}


def test_5_1_the_history_is_configured_by_the_user() -> None:
    assert parse_policy("", file="x.policy").histories == ()
    (kept,) = parse_policy("history { keep $load over 10min; }", file="x.policy").histories
    assert (kept.name, kept.length_ns) == ("load", 10 * MINUTE)


def test_5_1_its_characteristics_are_passed_with_the_datum() -> None:
    policy = parse_policy("history { keep $load over 1h; } advertise every 1s { send $load_mean; }", file="x.policy")
    here = SDV(sorted_pairs({"load": 10, "load_mean": 20, "load_sd": 3}))
    sent = policy.disclosure.describe_here(here, CalendarTime(clock=0, date=0)).description()
    assert sent == {"load": 10, "load_mean": 20}
