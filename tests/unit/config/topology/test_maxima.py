"""The most that one task may have on a machine, in a topology, and what is wrong with it."""

from pathlib import Path

import pytest

from messiahs.config.settings import MachineSettings
from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.reading import load_topology
from messiahs.config.topology.topology import Topology
from messiahs.core.model.task_limits import Maxima
from messiahs.errors import TopologyError

_TOPOLOGY = """
version: 1
federation: pact
systems:
  cs: {{machine: {{{keys}}}}}
"""


def topology(folder: Path, keys: str) -> Topology:
    file = folder / "pact.yaml"
    file.write_text(_TOPOLOGY.format(keys=keys))
    return load_topology(file)


def machine(folder: Path, keys: str) -> MachineSettings:
    (system,) = topology(folder, keys).systems
    assert system.machine is not None
    return system.machine


def test_each_maximum_has_its_unit(tmp_path: Path) -> None:
    found = machine(tmp_path, "at_most: {mem: 8GiB, disk: 20GiB, time: 2h, open_files: 4096}")
    assert found.maxima == Maxima(memory_bytes=8 << 30, disk_bytes=20 << 30, run_seconds=7200)
    assert found.open_files == 4096


def test_a_task_may_have_all_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    for keys in ("", "at_most: {}"):
        found = machine(tmp_path, keys)
        assert (found.maxima, found.open_files) == (Maxima(), None)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("at_most: 8GiB", "`at_most` needs a mapping"),
        ("at_most: {memory: 8GiB}", "unknown key `memory`"),
        ("at_most: {mem: 8}", "mem: `8` is not a size: it needs a unit"),
        ("at_most: {disk: 0GiB}", "disk: no task could run with nothing"),
        ("at_most: {time: 1500ms}", "time: `1500ms` is not a whole number of seconds"),
        ("at_most: {open_files: 64}", "open_files: `64` is not a number from 1024 to 1048576"),
        ("at_most: {open_files: many}", "open_files: `many` is not a number from 1024 to 1048576"),
        ("at_most: {open_files: 99999999999999999999}", "is not a number from 1024 to 1048576"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, keys: str, problem: str) -> None:
    with pytest.raises(TopologyError) as refused:
        machine(tmp_path, keys)
    (text,) = refused.value.problems
    assert problem in text
    assert ":5:" in text


def test_a_changed_maximum_is_a_difference_between_two_files(tmp_path: Path) -> None:
    old = topology(tmp_path, "slots: 1, at_most: {mem: 8GiB}")
    new = topology(tmp_path, "slots: 1, at_most: {mem: 4GiB, time: 2h, open_files: 2048}")
    (found,) = topology_differences(old, new).changed["cs"]
    assert found.old == "proc; slots=1; at most 8 GiB of memory for a task"
    assert found.new == "proc; slots=1; at most 4 GiB of memory, 7200 s of run time, 2048 open files for a task"


def test_sizes_of_a_machine_have_units_in_a_difference(tmp_path: Path) -> None:
    old = topology(tmp_path, "probe: fixed, slots: 1, total_mem: 16GiB, attributes: {rack: 7}")
    new = topology(tmp_path, "probe: fixed, slots: 1, total_mem: 24GiB, attributes: {rack: 7}")
    (found,) = topology_differences(old, new).changed["cs"]
    assert (found.old, found.new) == (
        "fixed; rack=7, slots=1, total_mem=16 GiB",
        "fixed; rack=7, slots=1, total_mem=24 GiB",
    )
