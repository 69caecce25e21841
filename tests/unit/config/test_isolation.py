"""The keys of a machine that say how it contains tasks, and what is wrong with them."""

import os
import pwd
from pathlib import Path

import pytest

from messiahs.config.settings import DEFAULT_TASK_UIDS, MachineSettings
from messiahs.config.topology.differences import topology_differences
from messiahs.config.topology.isolation import problem_of_uids
from messiahs.config.topology.reading import load_topology
from messiahs.errors import TopologyError

_TOPOLOGY = """
version: 1
federation: pact
systems:
  cs: {{machine: {{{keys}}}}}
"""


def machine(folder: Path, keys: str) -> MachineSettings:
    file = folder / "pact.yaml"
    file.write_text(_TOPOLOGY.format(keys=keys))
    (system,) = load_topology(file).systems
    assert system.machine is not None
    return system.machine


def test_a_way_of_containing_tasks_is_automatic_unless_it_is_chosen(tmp_path: Path) -> None:
    assert machine(tmp_path, "").isolation == ""
    assert machine(tmp_path, "isolation: process").isolation == "process"
    found = machine(tmp_path, "isolation: sandbox")
    assert (found.isolation, found.network, found.shown, found.task_uids) == (
        "sandbox",
        "loopback",
        (),
        DEFAULT_TASK_UIDS,
    )


def test_network_folders_and_accounts_are_chosen(tmp_path: Path) -> None:
    keys = "isolation: sandbox, network: none, show: [/usr, /etc], task_uids: 1900000000-1900000007"
    found = machine(tmp_path, keys)
    assert (found.network, found.shown) == ("none", ("/usr", "/etc"))
    assert found.task_uids == (1900000000, 1900000007)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("isolation: ''", "isolation: `` is none of process, sandbox, bubblewrap"),
        ("isolation: cage", "isolation: `cage` is none of process, sandbox, bubblewrap"),
        ("network: all", "network: `all` is none of none, loopback, outbound, host"),
        ("network: outbound", "network: `outbound` needs `isolation: sandbox` or `bubblewrap`: without `isolation`"),
        ("network: none", "or `bubblewrap`: without `isolation`, tasks are processes where sandboxes do not work"),
        ("isolation: process, network: loopback", "needs `isolation: sandbox` or `bubblewrap`: processes have that"),
        ("isolation: process, show: [/srv]", "`isolation: process` has no sandboxes: remove its `show`"),
        ("show: /usr", "show: a list of absolute paths"),
        ("show: [usr]", "show: a list of absolute paths"),
        ("show: [/usr/../etc]", "show: a list of absolute paths"),
        ("show: [/]", "show: a list of absolute paths"),
        ("task_uids: 7", "task_uids: `7` is not a range such as"),
        ("task_uids: 0-9", "task_uids: from 1 to"),
        ("task_uids: 9-8", "task_uids: from 1 to"),
        ("task_uids: 2147483640-2147483648", "task_uids: from 1 to 2147483647"),
        ("task_uids: 65000-65600", "task_uids: 65534 stands for accounts that have no number"),
        ("task_uids: 1000000000-1000065536", "task_uids: at most 65536 numbers"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, keys: str, problem: str) -> None:
    with pytest.raises(TopologyError) as found:
        machine(tmp_path, keys)
    assert problem in str(found.value)
    assert "pact.yaml:5" in str(found.value)


def test_the_number_of_an_account_is_refused() -> None:
    own = next(entry for entry in pwd.getpwall() if 0 < entry.pw_uid < 65_534)
    assert problem_of_uids(own.pw_uid, own.pw_uid) == (
        f"{own.pw_uid} is the account {own.pw_name}; tasks need numbers that nobody has"
    )


def test_the_default_numbers_can_be_used_here() -> None:
    assert problem_of_uids(*DEFAULT_TASK_UIDS) == ""
    assert os.geteuid() not in range(DEFAULT_TASK_UIDS[0], DEFAULT_TASK_UIDS[1] + 1)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("isolation: process", "", ("proc; process", "proc")),
        ("", "isolation: sandbox", ("proc", "proc; sandbox network loopback accounts 2100000000-2100001023")),
        ("", "show: [/usr]", ("proc", "proc; network loopback accounts 2100000000-2100001023 /usr")),
    ],
)
def test_what_is_chosen_anew_is_a_difference(tmp_path: Path, old: str, new: str, shown: tuple[str, str]) -> None:
    (tmp_path / "old").mkdir()
    topologies = []
    for folder, keys in ((tmp_path / "old", old), (tmp_path, new)):
        machine(folder, keys)
        topologies.append(load_topology(folder / "pact.yaml"))
    (found,) = topology_differences(*topologies).changed["cs"]
    assert (found.old, found.new) == shown
