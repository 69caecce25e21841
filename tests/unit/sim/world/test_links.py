"""What links cost in the simulated world: delays add up along a way, and the least throughput counts."""

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.link_costs import LinkCosts
from messiahs.core.model.task_files import InputFile
from messiahs.sim.world.links import HOP_DELAY_NS, Links

A, B, C, D, STRANGER = map(SystemId, ("a", "b", "c", "d", "stranger"))
LINE = {A: (B,), B: (A, C), C: (B, D), D: (C,)}
START = Instant(7 * SECOND)


def links() -> Links:
    stated = {
        frozenset((A, B)): LinkCosts(40 * MILLISECOND, 1_000),
        frozenset((C, D)): LinkCosts(None, 500),
    }
    return Links(stated, LINE)


def file(name: str, size_bytes: int) -> InputFile:
    return InputFile(name=name, sha256=name.encode(), size_bytes=size_bytes)


def test_without_statements_every_way_is_a_hop_and_files_take_no_time() -> None:
    plain = Links()
    assert plain.delay_ns(A, D) == plain.delay_ns(A, A) == HOP_DELAY_NS
    assert plain.carry(A, D, (file("x", 1 << 40),), START) == (0, 0)


def test_delays_add_up_along_the_way_and_a_link_without_one_has_that_of_a_hop() -> None:
    found = {to: links().delay_ns(A, to) // MILLISECOND for to in (A, B, C, D, STRANGER)}
    assert found == {A: 0, B: 20, C: 21, D: 22, STRANGER: 1}
    assert links().delay_ns(D, A) == links().delay_ns(A, D)


def test_the_least_throughput_of_the_way_counts() -> None:
    assert links().carry(A, C, (file("x", 1_000),), START) == (1_000, SECOND)
    assert links().carry(A, D, (file("x", 1_000),), START) == (1_000, 2 * SECOND)
    assert links().carry(B, C, (file("x", 1_000),), START) == (0, 0)


def test_what_is_there_already_is_not_sent_again_and_what_is_on_its_way_is_waited_for() -> None:
    line = links()
    assert line.carry(A, B, (file("x", 3_000), file("y", 1_000)), START) == (4_000, 4 * SECOND)
    later = Instant(START + 3 * SECOND)
    assert line.carry(A, B, (file("x", 3_000),), later) == (0, SECOND)
    assert line.carry(A, B, (file("x", 3_000), file("z", 2_000)), later) == (2_000, 2 * SECOND)
    assert line.carry(A, B, (file("y", 1_000),), Instant(START + 9 * SECOND)) == (0, 0)
    assert line.carry(A, C, (file("y", 1_000),), later) == (1_000, SECOND)
