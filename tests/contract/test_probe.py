"""Guarantees of every probe, over both implementations."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.config.settings import MachineSettings
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, Kind, Value
from messiahs.core.model.descriptions import is_valid_value
from messiahs.probe.contract import KEYBOARD_IDLE, Probe
from messiahs.probe.make import make_probe

Make = Callable[[dict[str, Value]], Probe]


@pytest.fixture(params=["fixed", "proc"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    kind = str(request.param)
    return lambda attributes: make_probe(MachineSettings(probe=kind, attributes=attributes), lambda: tmp_path)


def test_values_of_the_administrator_are_reported(make: Make) -> None:
    said: dict[str, Value] = {"slots": 2, "arch": "sparc", "speed": 500, "avail_mem": 8 << 30}
    assert said.items() <= make(said).measure().description().items()


def test_extensions_of_both_types_are_reported(make: Make) -> None:
    assert {("gpu", "none"), ("licences", 3)} <= set(make({"licences": 3, "gpu": "none"}).measure().pairs)


def test_the_pairs_are_sorted_by_name(make: Make) -> None:
    names = [name for name, _ in make({"zeta": 1, "alpha": 2}).measure().pairs]
    assert names == sorted(names)


def test_values_that_the_core_counts_are_not_reported(make: Make) -> None:
    own: dict[str, Value] = {"free_slots": 9, "queue_length": 9, "wait_time": 9, "utilization": 9}
    assert not own.keys() & make(own).measure().description().keys()


def test_every_value_is_of_its_kind_and_range(make: Make) -> None:
    for name, value in make({}).measure().pairs:
        assert is_valid_value(value)
        attribute = MACHINE_ATTRIBUTES.get(name)
        assert attribute is not None or name == KEYBOARD_IDLE
        assert isinstance(value, str) == (attribute is not None and attribute.kind is Kind.STRING)


@pytest.mark.parametrize("probe", ["fixed", "proc"])
def test_the_age_of_a_named_file_is_the_idle_time_of_the_console(probe: str, tmp_path: Path) -> None:
    console = tmp_path / "used"
    made = make_probe(MachineSettings(probe=probe, console_file=console), lambda: tmp_path)
    assert KEYBOARD_IDLE not in made.measure().description()
    console.touch()
    os.utime(console, (1, time.time() - 600))
    idle = made.measure().description()[KEYBOARD_IDLE]
    assert isinstance(idle, int)
    assert 600 <= idle < 1200
    console.touch()
    assert made.measure().description()[KEYBOARD_IDLE] in range(300)
    os.utime(console, (1, time.time() + 1000))
    assert made.measure().description()[KEYBOARD_IDLE] == 0


def test_a_fixed_machine_reports_a_fixed_idle_time_without_a_console(tmp_path: Path) -> None:
    made = make_probe(MachineSettings(probe="fixed", attributes={KEYBOARD_IDLE: 600}), lambda: tmp_path)
    assert made.measure().description()[KEYBOARD_IDLE] == 600
