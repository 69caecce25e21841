"""The probe that measures."""

import os
import platform
import time
from pathlib import Path

import pytest

from messiahs.config.settings import MachineSettings
from messiahs.core.model.attributes import Value
from messiahs.errors import MessiahsError
from messiahs.probe.make import make_probe
from messiahs.probe.proc import ProcProbe


def measured(path: Path, attributes: dict[str, Value] | None = None) -> dict[str, Value]:
    return ProcProbe(attributes or {}, lambda: path).measure().description()


def integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def test_it_says_what_the_machine_is(tmp_path: Path) -> None:
    found = measured(tmp_path)
    disk = os.statvfs(tmp_path)
    assert found["nproc"] == found["slots"] == len(os.sched_getaffinity(0))
    assert (found["arch"], found["os"]) == (platform.machine(), platform.system())
    assert found["total_disk"] == disk.f_blocks * disk.f_frsize
    assert 0 < integer(found["avail_mem"]) < integer(found["total_mem"])


def test_slots_follow_a_number_of_processors_that_was_given(tmp_path: Path) -> None:
    assert measured(tmp_path, {"nproc": 64})["slots"] == 64
    assert measured(tmp_path, {"nproc": 64, "slots": 3})["slots"] == 3


def test_a_folder_that_is_not_made_yet_is_measured_where_it_will_be(tmp_path: Path) -> None:
    assert measured(tmp_path / "not" / "yet")["total_disk"] == measured(tmp_path)["total_disk"]


def test_a_busy_processor_shows_in_the_load(tmp_path: Path) -> None:
    probe = ProcProbe({}, lambda: tmp_path)
    deadline = time.monotonic() + 20
    # Measuring without a pause keeps one processor busy.
    while integer(probe.measure().description()["load"]) < 5_000 // (os.cpu_count() or 1):
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (MachineSettings(probe="guess"), "no probe 'guess'"),
        (MachineSettings(attributes={"os": "x" * 65}), "attribute os"),
        (MachineSettings(attributes={"slots": 2**63}), "attribute slots"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: MachineSettings, message: str, tmp_path: Path) -> None:
    with pytest.raises(MessiahsError, match=message):
        make_probe(settings, lambda: tmp_path)
