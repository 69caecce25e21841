"""Borders in a topology: what is behind them, and links that would lead past one (MESSIAHS 4)."""

from collections import UserDict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from messiahs.config.topology.borders import Bypass, above, behind, bypasses, why_bypassed
from messiahs.config.topology.neighbors import TlsPaths, module_settings
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import TopologyError

PARENTS = {
    "top": (),
    "cs": ("top",),
    "lab": ("cs",),
    "inner": ("cs",),
    "deep": ("inner",),
    "both": ("lab", "inner"),
}


def read(systems: str) -> Topology:
    return read_topology(f"version: 1\nfederation: f\nsystems:\n{systems}", "t.yaml")


def test_everything_below_a_border_is_behind_it_also_below_another_border() -> None:
    assert behind(PARENTS, "cs") == ("lab", "inner", "deep", "both")
    assert behind(PARENTS, "cs", ends=("inner",)) == ("lab", "inner", "both")
    assert behind(PARENTS, "lab") == ("both",)


@pytest.mark.parametrize(
    ("borders", "past"),
    [
        (("cs",), []),
        (("cs", "inner", "lab"), []),
        (("lab",), [Bypass(system="both", parent="inner", border="lab")]),
        (("cs", "inner"), [Bypass(system="both", parent="lab", border="inner")]),
    ],
)
def test_a_second_parent_that_is_no_border_leads_past_the_first(borders: tuple[str, ...], past: list[Bypass]) -> None:
    assert list(bypasses(PARENTS, borders)) == past


def test_the_borders_above_a_system_are_the_nearest_ones() -> None:
    assert above(PARENTS, "both", borders={"cs", "inner"}) == ("cs", "inner")
    assert above(PARENTS, "deep", borders={"cs", "inner"}) == ("inner",)
    assert above(PARENTS, "cs", borders={"cs"}) == ()


_NAMES = [f"s{number}" for number in range(6)]


@st.composite
def _new_parents(draw: st.DrawFn) -> tuple[dict[str, tuple[str, ...]], frozenset[str], str, str]:
    """Return the parents of six systems, borders, and a system with another one that may become its parent."""
    parents = {
        name: tuple(draw(st.lists(st.sampled_from(_NAMES[:place]), unique=True, max_size=2))) if place else ()
        for place, name in enumerate(_NAMES)
    }
    place = draw(st.integers(1, len(_NAMES) - 1))
    borders = draw(st.frozensets(st.sampled_from(_NAMES)))
    return parents, borders, _NAMES[place], draw(st.sampled_from(_NAMES[:place]))


@given(_new_parents())
def test_a_parent_at_run_time_leads_past_a_border_exactly_where_the_file_would_say_so(
    drawn: tuple[dict[str, tuple[str, ...]], frozenset[str], str, str],
) -> None:
    parents, borders, system, new = drawn
    assume(new not in parents[system] and not list(bypasses(parents, borders)))
    of_new = (new,) if new in borders else above(parents, new, borders=borders)
    here = above(parents, system, borders=borders)
    after = {**parents, system: (*parents[system], new)}
    expected = [each for each in bypasses(after, borders) if each.system == system]
    assert bool(why_bypassed(system, parents[system], behind_now=here, new=new, behind_new=of_new)) == bool(expected)


class _Counted(UserDict[str, tuple[str, ...]]):
    """Parents that count how often all of them are visited."""

    visits = 0

    def __iter__(self) -> Iterator[str]:
        self.visits += 1
        return super().__iter__()


def test_many_systems_are_visited_once_for_all_their_borders() -> None:
    borders = [f"b{each}" for each in range(10)]
    inside = {f"{border}-{each}": (border,) for border in borders for each in range(100)}
    above = dict.fromkeys((*borders, "apart"), ("top",))
    one, all_of_them = (_Counted({"top": (), **above, **inside, "b3-7": ("b3", "apart")}) for _ in range(2))
    assert list(bypasses(one, ["b3"])) == [Bypass(system="b3-7", parent="apart", border="b3")]
    assert list(bypasses(all_of_them, borders)) == [Bypass(system="b3-7", parent="apart", border="b3")]
    assert one.visits == all_of_them.visits


def test_a_link_past_a_border_is_a_problem_at_the_place_of_the_parent() -> None:
    systems = "  top: {}\n  cs: {parent: top, reach: proxy}\n  a: {parents: [cs, top], primary: cs}\n"
    with pytest.raises(TopologyError) as caught:
        read(systems)
    assert str(caught.value).startswith("t.yaml:6:21: `a` is behind the border `cs`, and its parent `top` is not")


def test_a_system_of_another_site_may_not_be_below_a_border() -> None:
    with pytest.raises(TopologyError) as caught:
        read("  cs: {reach: proxy}\n  a: {parent: cs}\n  ee: {parent: cs, external: true, host: h, port: 1}\n")
    (problem,) = caught.value.problems
    assert problem.startswith("t.yaml:6:16: `ee` belongs to another site and would be behind the border `cs`")
    assert read("  cs: {reach: proxy}\n  ee: {parent: cs, reach: proxy}\n").systems


def test_two_borders_may_stand_side_by_side() -> None:
    systems = (
        "  top: {}\n  cs: {parent: top, reach: proxy}\n  ee: {parent: top, reach: proxy}\n"
        "  a: {parents: [cs, ee], primary: cs}\n"
    )
    topology = read(systems)
    assert [system.name for system in topology.systems if system.is_border] == ["cs", "ee"]


def test_the_settings_of_a_module_say_whether_it_is_a_border() -> None:
    topology = read("  cs: {reach: proxy}\n  a: {parent: cs}\n")
    tls = TlsPaths(certificate_file=Path("c"), key_file=Path("k"), trust_file=Path("t"))
    addresses = {"cs": "h:1", "a": "h:2"}
    made = [
        module_settings(topology, name, addresses=addresses, state_directory=Path("s"), tls=tls) for name in ("cs", "a")
    ]
    assert [settings.is_border for settings in made] == [True, False]
