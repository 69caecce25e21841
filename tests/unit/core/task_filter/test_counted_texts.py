"""What a user is told whose task needs counted things, such as GPUs, that no machine has or has free."""

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Need
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.attributes import KEY_ATTRIBUTES, Value
from messiahs.core.model.counted import requirement_for
from messiahs.core.model.ids import SystemId
from messiahs.core.task_filter.counted_texts import in_use_text, too_few_text
from messiahs.core.task_filter.matching import need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import coalesce, vector_of
from messiahs.language.predicate.predicates import predicate_parser
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, only, sdv, tdv


def view(*machines: dict[str, Value]) -> IndexedVector:
    return IndexedVector(coalesce([vector_of(sdv(**said)) for said in machines], keys=KEY_ATTRIBUTES))


def need(requirement: str = "", **wish: Value) -> Need:
    parsed = predicate_parser(requirement)
    assert not isinstance(parsed, BadPredicate)
    return need_of(tdv(**wish), parsed)


def gpus(total: int, left: int, **more: Value) -> dict[str, Value]:
    return {"gpus": total, "free_gpus": left, **more}


def test_systems_with_too_few_things_are_named_with_the_most_that_one_machine_has() -> None:
    views = {
        "one": view(gpus(2, 1), gpus(1, 1)),
        "other": view(gpus(4, 0)),
        "small": view(gpus(1, 1)),
        "plain": view({}),
    }
    named = {SystemId(name): each for name, each in views.items()}
    assert too_few_text(need(gpus=3, licences=1), named) == "too few GPUs: at most 2 at one, 1 at small"
    assert too_few_text(need(), named) == ""


@pytest.mark.parametrize(
    ("machines", "amount", "text"),
    [
        ([gpus(1, 0), gpus(1, 0), {}], 1, "all GPUs (2) are in use"),
        ([gpus(4, 1), gpus(4, 2), gpus(1, 1)], 3, "too few GPUs are free: 3 of 8, at most 2 on one machine"),
        ([gpus(9, 0)], 1, "all GPUs (8 to 9) are in use"),
        ([gpus(1, 0), gpus(1, 1)], 1, ""),
        ([gpus(1, 1)], 2, ""),
        ([{}], 1, ""),
        ([gpus(1, 0), gpus(1, 1, side="left")], 1, "all GPUs (1) are in use"),
    ],
)
def test_things_that_are_all_in_use_are_counted(machines: list[dict[str, Value]], amount: int, text: str) -> None:
    wish = need('$side ne "left"', gpus=amount) if "left" in str(machines) else need(gpus=amount)
    assert in_use_text(wish, [view({"side": "right", **each}) for each in machines]) == text


def test_a_kind_of_a_site_keeps_its_name_and_each_kind_has_its_text() -> None:
    busy = view({"licences": 3, "free_licences": 0, "gpus": 1, "free_gpus": 0})
    assert in_use_text(need(gpus=1, licences=1), [busy]) == "all GPUs (1) are in use; all licences (3) are in use"


def test_a_waiting_task_is_told_that_all_are_in_use_and_not_what_the_own_machine_lacks(module: ModuleFactory) -> None:
    alone = module()
    alone.greet(CHILD)
    alone.see(CHILD, vector_of(sdv(**gpus(2, 0))))
    alone.measure(speed=5)
    asked = alone.submit(requirement=requirement_for([("gpus", 1)]), waits=False, tdv=tdv(gpus=1))
    (row,) = (each.row for each in only(asked, Store) if isinstance(each.row, TaskRow))
    assert [(each.code, each.text) for each in row.reasons[:1]] == [(DenyCode.NO_CAPACITY, "all GPUs (2) are in use")]
