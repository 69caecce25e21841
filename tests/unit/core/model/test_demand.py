"""Classes of unmet demand: their sums, limits and redaction."""

import pytest

from messiahs.core.model.attributes import MOST_MACHINES
from messiahs.core.model.demand import (
    CLASS_LIMIT,
    OTHER_KEY,
    Demand,
    DemandClass,
    DemandKey,
    DemandSize,
    redacted,
    rounded_up,
    summed,
    total_of,
)

GPUS = DemandKey("gpus", amount=2, arch="x86_64", os="Linux")


def many(count: int) -> list[DemandClass]:
    """Return classes of 1, 2, 3 ... processors, in another order."""
    classes = [
        DemandClass(DemandKey("mem", amount=1 << number), DemandSize(1, number)) for number in range(1, count + 1)
    ]
    return classes[::2] + classes[1::2]


def sizes(demand: Demand) -> dict[DemandKey, DemandSize]:
    return {each.key: each.size for each in demand}


def test_equal_keys_are_added_up_and_empty_classes_left_out() -> None:
    one, other = DemandClass(GPUS, DemandSize(1, 2, 3, 4)), DemandClass(GPUS, DemandSize(10, 20, 30, 40))
    none = DemandClass(DemandKey("cpus"), DemandSize())
    assert summed((one, none, other)) == (DemandClass(GPUS, DemandSize(11, 22, 33, 44)),)
    assert summed(()) == ()


def test_the_smallest_classes_beyond_the_limit_are_one_and_the_total_stays() -> None:
    demand = summed(many(40))
    assert len(demand) == CLASS_LIMIT
    assert [each.size.processors for each in demand] == [*range(40, 25, -1), sum(range(26))]
    assert demand[-1].key == OTHER_KEY
    assert total_of(demand) == DemandSize(40, sum(range(41)))
    again = summed((*demand, *demand))
    assert total_of(again) == total_of(demand).plus(total_of(demand))
    assert len(summed(many(CLASS_LIMIT))) == CLASS_LIMIT
    assert OTHER_KEY not in sizes(summed(many(CLASS_LIMIT)))


def test_a_sum_never_exceeds_what_can_be_sent() -> None:
    most = DemandClass(GPUS, DemandSize(*[MOST_MACHINES] * 4))
    assert summed((most, most)) == (most,)


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ((), GPUS),
        (("speed", "free_gpus"), GPUS),
        (("gpus",), OTHER_KEY),
        (("arch",), GPUS._replace(arch="")),
        (("os", "arch"), GPUS._replace(arch="", os="")),
    ],
)
def test_nothing_is_said_of_a_withheld_attribute(hidden: tuple[str, ...], shown: DemandKey) -> None:
    demand = summed([DemandClass(GPUS, DemandSize(3, 6))])
    assert sizes(redacted(demand, lambda name: name not in hidden, least=0)) == {shown: DemandSize(3, 6)}


@pytest.mark.parametrize(
    ("key", "needed"),
    [
        (DemandKey("cpus"), "slots"),
        (DemandKey("cpus", is_busy=True), "free_slots"),
        (DemandKey("mem"), "total_mem"),
        (DemandKey("mem", is_busy=True), "avail_mem"),
        (DemandKey("disk"), "total_disk"),
        (DemandKey("disk", is_busy=True), "avail_disk"),
        (DemandKey("arch"), "arch"),
        (DemandKey("os"), "os"),
        (DemandKey("matlab"), "matlab"),
        (DemandKey("matlab", is_busy=True), "free_matlab"),
    ],
)
def test_a_class_is_as_public_as_the_attribute_that_it_is_about(key: DemandKey, needed: str) -> None:
    demand = summed([DemandClass(key, DemandSize(3, 6))])
    assert sizes(redacted(demand, lambda name: name == needed, least=0)) == {key: DemandSize(3, 6)}
    assert list(sizes(redacted(demand, lambda name: name != needed, least=0))) == [OTHER_KEY]


def test_what_is_no_attribute_is_shown_to_all_to_whom_demand_is() -> None:
    keys = [DemandKey("policy"), DemandKey("requirement"), OTHER_KEY]
    demand = summed(DemandClass(key, DemandSize(1, 1)) for key in keys)
    assert redacted(demand, lambda _: False, least=0) == demand


@pytest.mark.parametrize(
    ("tasks", "least", "shown"),
    [
        ((9, 8, 7), 5, [9, 8, 7]),
        ((9, 8, 2), 5, [9, 10]),
        ((9, 3, 2), 5, [9, 5]),
        ((3, 1, 1), 5, [5]),
        ((2, 1, 1), 5, []),
        ((9, 5, 1), 5, [9, 6]),
    ],
)
def test_no_class_of_few_tasks_is_shown(tasks: tuple[int, ...], least: int, shown: list[int]) -> None:
    keys = [DemandKey(name) for name in ("cpus", "mem", "disk")]
    demand = summed(DemandClass(key, DemandSize(count, count)) for key, count in zip(keys, tasks, strict=True))
    found = redacted(demand, lambda _: True, least=least)
    assert [each.size.tasks for each in found] == shown
    assert total_of(found).tasks in (sum(tasks), 0)


def test_amounts_are_rounded_up_to_powers_of_two() -> None:
    assert [rounded_up(amount) for amount in (-1, 0, 1, 2, 3, 4, 5, 1 << 62)] == [0, 0, 1, 2, 4, 4, 8, 1 << 62]
