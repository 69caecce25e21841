"""Accounts of the host in a policy: checked when it is to be in force at the machine whose tasks would have them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.config.settings import PROCESS, SANDBOX, MachineSettings, ModuleSettings
from messiahs.daemon.policies.in_force import Policies
from messiahs.errors import PolicyError
from tests.local_accounts import made_account

OWN = 'policy "own"; accept from any { limit 1 tasks; }'
processes = pytest.mark.processes
_MACHINE = MachineSettings(isolation=SANDBOX)


@pytest.fixture
def account() -> Iterator[str]:
    with made_account() as name:
        yield name


def settings(folder: Path, machine: MachineSettings | None = _MACHINE) -> ModuleSettings:
    """Return the settings of a module with a policy of its own."""
    (folder / "m").mkdir(exist_ok=True)
    (folder / "own.policy").write_text(OWN)
    return ModuleSettings(
        federation="f",
        name="m",
        state_directory=folder,
        listen="localhost:1",
        certificate_file=folder / "none",
        key_file=folder / "none",
        trust_file=folder / "none",
        policy_file=folder / "own.policy",
        machine=machine,
    )


def policies(made: ModuleSettings) -> Policies:
    return Policies(made, on_changed=lambda _: None)


def mapped(*names: str) -> str:
    """Return a policy with these accounts, one block each, in which an account is in line 2, 3, ..."""
    blocks = (
        f'accept from "peer{place}" {{ limit 1 tasks; as account "{name}"; }}' for place, name in enumerate(names)
    )
    return "\n".join(('policy "mapped";', *blocks))


def problems(loaded: Policies, text: str) -> list[tuple[int, int, str]]:
    before = loaded.document()
    with pytest.raises(PolicyError) as raised:
        loaded.load(text, "mapped.policy")
    assert loaded.document() == before
    return [(problem.line, problem.column, problem.message) for problem in raised.value.problems]


@processes
def test_an_account_of_the_host_is_accepted_for_a_machine_with_sandboxes(tmp_path: Path, account: str) -> None:
    loaded = policies(settings(tmp_path))
    loaded.load(mapped(account), "mapped.policy")
    assert loaded.document()["name"] == "mapped"


@processes
def test_every_account_that_no_task_can_have_is_named_with_its_place(tmp_path: Path, account: str) -> None:
    first = os.geteuid() + 2_100_000_000
    machine = replace(_MACHINE, task_uids=(first, first))
    found = problems(policies(settings(tmp_path, machine)), mapped("no-such-account", account, "nobody"))
    assert found == [
        (2, 38, "no task can run as no-such-account: this host has no such account"),
        (4, 38, "no task can run as nobody: it is that of other tasks, or stands for accounts without a number"),
    ]


def test_a_machine_without_sandboxes_of_root_refuses_every_account(tmp_path: Path) -> None:
    (found,) = problems(policies(settings(tmp_path, MachineSettings(isolation=PROCESS))), mapped("daemon"))
    assert found[:2] == (2, 38)
    assert found[2].startswith("tasks run as an account of the host only in sandboxes")


def test_a_system_without_a_machine_may_have_the_policy_of_one_that_has(tmp_path: Path) -> None:
    loaded = policies(settings(tmp_path, None))
    loaded.load(mapped("no-such-account"), "mapped.policy")
    assert loaded.document()["name"] == "mapped"


@processes
def test_a_loaded_policy_stays_in_force_at_a_start_without_its_account(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = settings(tmp_path)
    with made_account() as account:
        policies(made).load(mapped(account), "mapped.policy")
    again = policies(made)
    assert again.document()["name"] == "mapped"
    assert f"no task can run as {account}: this host has no such account" in caplog.text
    assert [line for line, *_ in problems(again, mapped(account))] == [2]


@processes
def test_settings_without_sandboxes_are_refused_while_the_policy_names_an_account(tmp_path: Path, account: str) -> None:
    made = settings(tmp_path)
    loaded = policies(made)
    loaded.load(mapped(account), "mapped.policy")
    with pytest.raises(PolicyError):
        loaded.prepared(replace(made, machine=MachineSettings(isolation=PROCESS)))
    assert loaded.prepared(made)() == ""


@processes
def test_a_policy_is_checked_with_the_machine_that_runs_although_another_waits_for_a_restart(
    tmp_path: Path, account: str
) -> None:
    made = settings(tmp_path, MachineSettings(isolation=PROCESS))
    loaded = policies(made)
    loaded.prepared(replace(made, machine=_MACHINE))()
    (found,) = problems(loaded, mapped(account))
    assert found[2].startswith("tasks run as an account of the host only in sandboxes")
    # The file of the settings is in force at once, unlike their machine.
    (tmp_path / "own.policy").write_text(mapped(account))
    with pytest.raises(PolicyError, match="only in sandboxes"):
        loaded.prepared(replace(made, machine=_MACHINE))
