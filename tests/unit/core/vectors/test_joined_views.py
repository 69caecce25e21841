"""Many views side by side say what each of them says, however often they change, and however much they say."""

from collections.abc import Iterator
from random import Random

import pytest

from messiahs.core.model.attributes import Kind
from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.columns import Classes, Judged
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import LANE, VALUES, VIEWS, Overview
from messiahs.core.vectors.vectors import EMPTY, VARIOUS, ClassValue, Interval, MachineClass, Vector

Views = dict[SystemId, IndexedVector]


def _number(random: Random) -> ClassValue:
    least = random.randint(0, 50)
    return Interval(bucket_of(least), bucket_of(least + random.randint(0, 9)))


def _view(random: Random) -> IndexedVector:
    def said() -> Iterator[tuple[str, ClassValue]]:
        if random.random() < 0.9:
            yield "a", _number(random)
        if random.random() < 0.5:
            yield "b", random.choice(["x", "y", VARIOUS, _number(random)])

    classes = tuple(MachineClass(count=1, attributes=tuple(said())) for _ in range(random.randint(0, 5)))
    return IndexedVector(Vector(classes))


def _systems(count: int) -> list[SystemId]:
    return [SystemId(f"s{number}") for number in range(count)]


def _a_is_at_least_20(classes: Classes) -> Judged:
    (a,) = classes.columns(Kind.INTEGER, "a")
    return a.at_least(20)


def _b_is_at_least_y(classes: Classes) -> Judged:
    (b,) = classes.columns(Kind.STRING, "b")
    return b.at_least("y")


def _b_is_above_a(classes: Classes) -> Judged:
    a, b = classes.columns(Kind.INTEGER, "a", "b")
    return b.above_that_of(a)


def _c_is_known(classes: Classes) -> Judged:
    (c,) = classes.columns(Kind.INTEGER, "c")
    return c.known, c.possible


JUDGES = (_a_is_at_least_20, _b_is_at_least_y, _b_is_above_a, _c_is_known)


def _check(overview: Overview, views: Views) -> None:
    for judge in JUDGES:
        assert overview.judged(views, judge) == [judge(view) for view in views.values()]


@pytest.mark.parametrize("count", [0, 1, VIEWS, VIEWS + 1, 3 * VIEWS])
def test_every_view_gets_its_own_verdict(count: int) -> None:
    random = Random(1)
    _check(Overview(), {system: _view(random) for system in _systems(count)})


def test_views_that_change_again_and_again_are_seen_as_they_are() -> None:
    random, overview = Random(2), Overview()
    views = {system: _view(random) for system in _systems(VIEWS + 9)}
    for _ in range(40):
        for system in random.sample(sorted(views), k=random.randint(0, 5)):
            views[system] = _view(random)
        _check(overview, views)


def test_systems_come_go_and_are_left_out() -> None:
    random, overview = Random(3), Overview()
    known = _systems(500)
    views = {system: _view(random) for system in known}
    for count in (500, 20, 1, 100, 500):
        _check(overview, {system: views[system] for system in random.sample(known, k=count)})
    assert overview.judged({}, _a_is_at_least_20) == []


def test_systems_that_left_are_forgotten() -> None:
    random, overview = Random(4), Overview()
    for number in range(5000):
        _check(overview, {SystemId(f"s{number}"): _view(random)})
    assert len(overview._places) <= VIEWS + 3


def test_attributes_with_very_many_values_are_judged_as_well() -> None:
    strings = [f"name{number}" for number in range(VALUES + LANE)]
    classes = [MachineClass(count=1, attributes=(("b", each),)) for each in strings]
    views = {
        system: IndexedVector(Vector(tuple(classes[start : start + LANE])))
        for system, start in zip(_systems(VALUES), range(0, len(classes), LANE), strict=False)
    }
    overview = Overview()
    _check(overview, views)
    # As soon as there are few of them again, they stand side by side again.
    _check(overview, dict.fromkeys(views, IndexedVector(EMPTY)))
    _check(overview, views)


def test_of_attributes_that_strangers_ask_for_not_much_is_kept() -> None:
    random, overview = Random(5), Overview()
    views = {system: _view(random) for system in _systems(3)}
    for number in range(1000):
        overview.judged(views, lambda classes, name=f"a{number}": classes.columns(Kind.INTEGER, name)[0].at_least(1))  # type: ignore[misc]
    assert len(overview._panels[0]._shown) == 0
    _check(overview, views)
