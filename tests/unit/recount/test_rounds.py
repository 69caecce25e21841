"""Audits of small federations, whose facts are written by hand: relations, sums, arrivals, and updates in flight."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from messiahs.recount.checks import What
from messiahs.recount.facts import (
    NOTHING,
    Key,
    Kind,
    Machines,
    Module,
    Neighbor,
    Received,
    Relations,
    Sent,
    Vector,
)
from messiahs.recount.rounds import Recount

PERIOD_NS = 1_000_000_000
CHILD, PARENT = Relations(is_child=True, is_primary_child=True), Relations(is_parent=True, is_primary_parent=True)
SIBLING = Relations(is_sibling=True)


def machine(name: str) -> Vector:
    return frozenset({(Machines(1, (("is", name),)), 1)})


def together(*vectors: Vector) -> Vector:
    return frozenset().union(*vectors)


def module(
    name: str,
    *neighbors: Neighbor,
    at: str | None = None,
    own: Vector | None = None,
) -> Module:
    return Module(
        name=name,
        own=machine(name) if own is None else own,
        counted_at=at,
        is_in_place=True,
        period_ns=PERIOD_NS,
        neighbors={each.name: each for each in neighbors},
    )


def neighbor(
    name: str,
    relations: Relations,
    *,
    got: dict[Kind, Vector],
    sent: dict[Kind, Sent],
    hears: Iterable[str] = (),
    counted: Relations | None = None,
) -> Neighbor:
    said = {Kind.UP: relations.is_child, Kind.SIDE: True, Kind.DOWN: None}
    return Neighbor(
        name=name,
        relations=relations,
        counted=relations if counted is None else counted,
        received={kind: Received(vector=it, counted=said[kind], hears=tuple(hears)) for kind, it in got.items()},
        sent=sent,
    )


def sent(
    vector: Vector, own: Vector, heard: dict[Key, Vector] | None = None, /, *, counted: bool | None = True
) -> Sent:
    return Sent(vector=vector, counted=counted, own=own, heard=heard or {})


def family(*, up: Vector | None = None, arrived: Vector | None = None) -> dict[str, Module]:
    """Make a parent `p` with children `a` and `b`, which are siblings; `up` is what `a` sent as U."""
    p, a, b = machine("p"), machine("a"), machine("b")
    u = a if up is None else up
    seen = u if arrived is None else arrived
    heard: dict[Key, Vector] = {("a", Kind.UP): seen, ("b", Kind.UP): b}
    down = sent(p, p, heard, counted=None)
    beside = {"a": b, "b": a}
    children = [
        module(
            name,
            neighbor("p", PARENT, got={Kind.DOWN: p}, sent={Kind.UP: sent(mine, machine(name))}),
            neighbor(
                other,
                SIBLING,
                got={Kind.SIDE: beside[name]},
                sent={Kind.SIDE: sent(machine(name), machine(name))},
            ),
            at="p",
        )
        for name, other, mine in (("a", "b", u), ("b", "a", b))
    ]
    parent = module(
        "p",
        neighbor("a", CHILD, got={Kind.UP: seen}, sent={Kind.DOWN: down}, hears=("b",)),
        neighbor("b", CHILD, got={Kind.UP: b}, sent={Kind.DOWN: down}, hears=("a",)),
    )
    return {each.name: each for each in (parent, *children)}


def found(modules: dict[str, Module]) -> set[tuple[object, ...]]:
    """Audit facts that stay as they are."""
    recount = Recount()
    recount.read(modules, 0)
    recount.read(modules, 3 * PERIOD_NS)
    assert recount.is_settled
    return {
        (check.place.module, check.place.neighbor, check.place.equation, each.what, each.count, each.machines)
        for check in recount.deviating()
        for each in check.deviations
    }


def with_neighbor(one: Module, changed: Neighbor) -> Module:
    return replace(one, neighbors={**one.neighbors, changed.name: changed})


def test_a_family_whose_sums_are_right_holds_at_the_first_read() -> None:
    recount = Recount()
    recount.read(family(), 0)
    assert (recount.is_settled, recount.failing) == (True, {})
    # For each of the six directions: a sum, its sources, its arrival and a relation, but none of parents;
    # for each module: its own machine, its ancestors, and the tree.
    assert len(recount.held) == 6 * 3 + 4 + 3 * 3


@pytest.mark.parametrize(
    ("up", "expected"),
    [
        (frozenset({(Machines(2, (("is", "a"),)), 1)}), ("a", "p", 19, What.TWICE, 1, ("a",))),
        (NOTHING, ("a", "p", 19, What.LOST, 1, ("a",))),
        (machine("x"), ("a", "p", 19, What.OUTSIDE, 1, ("a",))),
    ],
    ids=["twice", "lost", "outside"],
)
def test_a_sum_with_other_machines_than_it_should_have_deviates(up: Vector, expected: tuple[object, ...]) -> None:
    assert found(family(up=up)) == {expected}


def test_a_vector_that_arrives_altered_deviates_at_its_receiver() -> None:
    assert found(family(arrived=together(machine("a"), machine("z")))) == {("p", "a", 22, What.TWICE, 1, ())}


def test_a_sum_from_vectors_that_never_came_deviates() -> None:
    facts = family()
    parent = facts["p"].neighbors["a"]
    old = {("a", Kind.UP): machine("a"), ("b", Kind.UP): machine("old")}
    # Each child hears the other, so its vector has none of them, and is as right as before.
    stale = replace(parent, sent={Kind.DOWN: sent(machine("p"), machine("other"), old, counted=None)})
    facts["p"] = with_neighbor(facts["p"], stale)
    assert ("p", "a", 20, What.OUTDATED, 1, ("p",)) in found(facts)


def test_a_child_that_two_parents_count_is_counted_twice() -> None:
    facts = family()
    facts["a"] = replace(facts["a"], counted_at=None)
    assert ("p", "a", 15, What.TWICE, 1, ("a",)) in found(facts)


def test_a_child_that_no_parent_counts_is_lost() -> None:
    facts = family()
    uncounted = replace(facts["p"].neighbors["a"], counted=Relations(is_child=True))
    facts["p"] = with_neighbor(facts["p"], uncounted)
    assert ("p", "a", 15, What.LOST, 1, ("a",)) in found(facts)


def test_a_sibling_that_only_one_of_them_counts_deviates() -> None:
    facts = family()
    facts["a"] = with_neighbor(facts["a"], replace(facts["a"].neighbors["b"], counted=Relations()))
    assert ("a", "b", 16, What.LOST, 1, ("b",)) in found(facts)


def test_a_sibling_that_is_heard_and_added_by_the_parent_is_known_twice() -> None:
    facts = family()
    unheard = replace(facts["p"].neighbors["a"].received[Kind.UP], hears=())
    facts["p"] = with_neighbor(facts["p"], replace(facts["p"].neighbors["a"], received={Kind.UP: unheard}))
    assert ("a", "a", 20, What.TWICE, 1, ("b",)) in found(facts)


def test_a_cycle_of_primary_parents_is_named_at_each_of_them() -> None:
    ring = {"a": ("b", "c"), "b": ("c", "a"), "c": ("a", "b")}
    facts = {
        name: module(
            name,
            neighbor(above, PARENT, got={}, sent={}),
            neighbor(below, CHILD, got={}, sent={}),
            at=above,
        )
        for name, (above, below) in ring.items()
    }
    cycles = {each[:3] for each in found(facts) if each[2] == 17}
    assert cycles == {(name, name, 17) for name in ring}


def test_a_system_with_more_than_its_own_machine_deviates() -> None:
    two = frozenset({(Machines(2, (("is", "p"),)), 1)})
    assert ("p", "p", 19, What.TWICE, 1, ("p",)) in found({**family(), "p": replace(family()["p"], own=two)})


def test_a_policy_that_shows_nothing_is_no_deviation() -> None:
    facts = family(up=NOTHING)
    shown = facts["a"].neighbors["p"]
    withheld = replace(shown.sent[Kind.UP], is_withheld=True)
    facts["a"] = with_neighbor(facts["a"], replace(shown, sent={Kind.UP: withheld}))
    assert found(facts) == set()


def test_a_neighbor_that_was_not_read_is_believed() -> None:
    facts = family(up=together(machine("a"), machine("q")))
    del facts["a"]
    assert found(facts) == set()


def test_an_update_in_flight_is_unsettled_until_it_arrives() -> None:
    more = frozenset({(Machines(1, (("is", "a"), ("load", (3, 3)))), 1)})
    recount = Recount()
    recount.read(family(up=more, arrived=machine("a")), 0)
    assert not recount.is_settled
    assert {check.place.equation for check in recount.unsettled()} == {19, 22}
    assert recount.deviating() == ()
    facts = family(up=more)
    facts["a"] = replace(facts["a"], own=more)
    shown = facts["a"].neighbors["p"]
    facts["a"] = with_neighbor(facts["a"], replace(shown, sent={Kind.UP: sent(more, more)}))
    recount.read(facts, PERIOD_NS)
    assert (recount.is_settled, recount.failing) == (True, {})


def test_a_difference_that_lasts_three_of_the_longest_periods_is_a_deviation() -> None:
    recount, facts = Recount(), family(up=NOTHING)
    facts["b"] = replace(facts["b"], period_ns=2 * PERIOD_NS)
    recount.read(facts, 0)
    recount.read(facts, 6 * PERIOD_NS - 1)
    assert (recount.is_settled, recount.deviating()) == (False, ())
    recount.read(facts, 6 * PERIOD_NS)
    assert recount.is_settled
    assert len(recount.deviating()) == 1
