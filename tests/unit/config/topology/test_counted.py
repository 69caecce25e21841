"""The counted things of a machine in a topology, and what is wrong with them."""

import re
from pathlib import Path

import msgspec
import pytest

from messiahs.config.settings import MachineSettings
from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.reading import load_topology
from messiahs.config.topology.topology import Topology
from messiahs.core.model.counted import Counted
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


def test_a_list_has_the_numbers_and_a_count_stands_for_those_from_0_on(tmp_path: Path) -> None:
    found = machine(tmp_path, "counted: {gpus: [3, 0], licences: 3, spare: 0}").counted
    assert found == (
        Counted(name="gpus", numbers=(0, 3)),
        Counted(name="licences", numbers=(0, 1, 2)),
        Counted(name="spare", numbers=()),
    )


def test_a_mapping_has_the_numbers_with_their_device_files_which_the_settings_keep(tmp_path: Path) -> None:
    gpus = "gpus: {3: [/dev/nvidia3, /dev/nvidiactl], 0: [/dev/nvidia0, /dev/nvidiactl]}"
    found = machine(tmp_path, f"counted: {{{gpus}, licences: 3}}")
    assert found.counted[0] == Counted(name="gpus", numbers=(0, 3))
    assert found.devices == {"gpus": {3: ("/dev/nvidia3", "/dev/nvidiactl"), 0: ("/dev/nvidia0", "/dev/nvidiactl")}}
    assert msgspec.json.decode(msgspec.json.encode(found), type=MachineSettings) == found


def test_changed_device_files_are_a_difference_between_two_files(tmp_path: Path) -> None:
    old, new = (
        topology(tmp_path, f"slots: 1, counted: {{gpus: {gpus}, licences: 1}}")
        for gpus in ("[0, 1]", "{0: [/dev/gpu0, /dev/control], 1: [/dev/gpu1]}")
    )
    (found,) = topology_differences(old, new).changed["cs"]
    assert found.old == "proc; slots=1; gpus 0,1, licences 0"
    assert found.new == "proc; slots=1; gpus 0 (/dev/gpu0 /dev/control),1 (/dev/gpu1), licences 0"


def test_a_machine_has_none_unless_the_file_names_them(tmp_path: Path) -> None:
    assert machine(tmp_path, "").counted == ()


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("counted: 3", "counted"),
        ("counted: {gpus: two}", "gpus: `two` is neither a count up to 256 nor a list"),
        ("counted: {gpus: true}", "is neither a count"),
        ("counted: {gpus: -1}", "is neither a count"),
        ("counted: {gpus: 257}", "is neither a count"),
        ("counted: {gpus: [0, 0]}", "different numbers"),
        ("counted: {gpus: [0, 70000]}", "from 0 to 65535"),
        ("counted: {gpus: {0: /dev/nvidia0}}", "gpus: 0: `/dev/nvidia0` is no list of 1 to 32 device files"),
        ("counted: {gpus: {0: []}}", "is no list of 1 to 32 device files"),
        ("counted: {gpus: {0: [1]}}", "is no list of 1 to 32 device files"),
        ("counted: {gpus: {zero: [/dev/nvidia0]}}", "is neither a count"),
        ("counted: {gpus: {70000: [/dev/nvidia0]}}", "from 0 to 65535"),
        ("counted: {gpus: {0: [nvidia0]}}", "gpus: 0: `nvidia0` is not the absolute path of a device file below /dev"),
        ("counted: {gpus: {0: [/dev/nvidia0, /dev/mem]}}", "`/dev/mem` gives access to the memory"),
        (
            "counted: {gpus: {0: [/dev/stdin]}}",
            "gpus: 0: `/dev/stdin` leads to open files of the program that looks at it",
        ),
        ("counted: {GPUs: 2}", "a name has small letters"),
        (f"counted: {{{'g' * 33}: 2}}", "at most 32"),
        ("counted: {slots: 2}", "it is an attribute of every machine or task"),
        ("counted: {mem: 2}", "it is an attribute of every machine or task"),
        ("counted: {free_gpus: 2}", "how many are free"),
        ("counted: {task_id: 2}", "its variable would be one that every task has"),
        ("counted: {a: 1, b: 1, c: 1, d: 1}", "`counted` has 4 names of at most 3"),
        ("counted: {gpus: 1}, attributes: {gpus: 1}", "gpus: its value follows from `counted`"),
        ("counted: {gpus: 1}, attributes: {free_gpus: 1}", "free_gpus: its value follows from `counted`"),
        ("counted: {a: 1, b: 1, c: 1}, attributes: {x: 1, y: 2}", "each kind of counted things takes two"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path: Path, keys: str, problem: str) -> None:
    with pytest.raises(TopologyError, match=problem.replace("(", r"\(")):
        machine(tmp_path, keys)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ("gpus: -1", "gpus: `-1` is out of range: it is a whole number from 0 to 2^63 - 1"),
        ("free_gpus: -1", "free_gpus: `-1` is out of range"),
        ("gpus: two", "gpus: `two` is not an integer: it is a whole number from 0 to 2^63 - 1"),
        ("gpus: 1.5", "gpus: `1.5` is not an integer: it is a whole number from 0 to 2^63 - 1"),
        ("gpus: true", "gpus: `True` is not an integer: it is a whole number from 0 to 2^63 - 1"),
        ("gpus: 9223372036854775808", "gpus: `9223372036854775808` is out of range"),
        ("image: ../x", "image: is an attribute of tasks"),
    ],
)
def test_an_attribute_that_everybody_knows_has_a_value_of_its_kind(
    tmp_path: Path, attributes: str, problem: str
) -> None:
    with pytest.raises(TopologyError, match=re.escape(problem)):
        machine(tmp_path, f"attributes: {{{attributes}}}")
    assert machine(tmp_path, "attributes: {gpus: 1}").attributes == {"gpus": 1}
