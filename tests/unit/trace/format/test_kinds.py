"""Which types a trace can hold: all of the core's, and no other one silently."""

import dataclasses
from dataclasses import dataclass, field

import pytest

from messiahs.core.interface.events import ControlReceived
from messiahs.core.interface.rows import TaskRow
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.trace.format.kinds import PORTS, kinds_in
from messiahs.trace.format.records import contents


def test_all_that_a_module_knows_is_written_but_its_ports() -> None:
    fields = {each.name for each in dataclasses.fields(ModuleState)}
    assert set(contents().fields[ModuleState]) == fields - set(PORTS)
    assert set(contents().fields[Search]) == {each.name for each in dataclasses.fields(Search)}


def test_what_is_plain_is_left_to_the_library_and_what_is_shared_or_ambiguous_is_not() -> None:
    assert TaskRow in contents().plain
    assert not {Shape, ControlReceived} & contents().plain


@dataclass(slots=True)
class Unordered:
    """A state with a field that has no order."""

    names: set[str]


@dataclass(slots=True)
class Cached:
    """A state with something that follows from the rest."""

    names: list[str]
    known: object = field(default=None, compare=False)


@dataclass(slots=True)
class Forgotten:
    """A state with something derived that nobody could make anew."""

    names: list[str]
    known: object = field(compare=False)


@dataclass(slots=True)
class Longer:
    """As the cached one, with a field more."""

    names: list[str]
    count: int


def test_a_field_that_a_trace_could_not_hold_is_named() -> None:
    with pytest.raises(TypeError, match=r"set\[str\].*Unordered\.names"):
        kinds_in(Unordered)


def test_what_is_derived_is_left_out_and_needs_a_default() -> None:
    assert kinds_in(Cached).fields[Cached] == ("names",)
    with pytest.raises(TypeError, match=r"Forgotten\.known.*default"):
        kinds_in(Forgotten)


def test_other_fields_give_another_fingerprint() -> None:
    assert len({kinds_in(kind).fingerprint for kind in (Cached, Longer)}) == 2
