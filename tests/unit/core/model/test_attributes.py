"""The catalogue: one row per attribute, and nothing in it that the rest of the code could not handle."""

import re

from messiahs.core.model.attributes import (
    CATALOGUE,
    KEY_ATTRIBUTES,
    MACHINE_ATTRIBUTES,
    TASK_ATTRIBUTES,
    WELL_KNOWN,
    Kind,
    Scope,
    Unit,
)


def test_no_name_stands_twice_in_a_scope() -> None:
    assert len(MACHINE_ATTRIBUTES) + len(TASK_ATTRIBUTES) == len(CATALOGUE)


def test_no_name_means_one_thing_of_a_machine_and_another_of_a_task() -> None:
    assert not MACHINE_ATTRIBUTES.keys() & TASK_ATTRIBUTES.keys()


def test_names_are_written_as_variables_without_the_dollar() -> None:
    assert [a.name for a in CATALOGUE if not re.fullmatch(r"[a-z][a-z_]*", a.name)] == []


def test_every_attribute_says_what_it_means_and_who_supplies_it() -> None:
    assert {a.supplier for a in CATALOGUE} == {"probe", "topology", "module", "policy", "starter", "user"}
    assert [a.name for a in CATALOGUE if not a.meaning] == []


def test_only_numbers_have_units() -> None:
    assert [a.name for a in CATALOGUE if a.kind is Kind.STRING and a.unit is not Unit.NONE] == []


def test_sizes_are_bytes() -> None:
    sizes = [a for a in CATALOGUE if a.name.endswith(("mem", "disk"))]
    assert [a.name for a in sizes] == ["total_mem", "avail_mem", "total_disk", "avail_disk", "mem", "disk"]
    assert {a.unit for a in sizes} == {Unit.BYTES}


def test_the_keys_are_machine_attributes_in_order_of_name() -> None:
    assert list(KEY_ATTRIBUTES) == sorted(KEY_ATTRIBUTES)
    assert {*KEY_ATTRIBUTES} <= {
        *MACHINE_ATTRIBUTES,
        *(each.name for each in WELL_KNOWN if each.scope is Scope.MACHINE),
    }
