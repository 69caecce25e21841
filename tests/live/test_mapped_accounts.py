"""Tasks of a neighbor that run as an account of the host, because the policy of the machine maps them to it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, brought_up
from tests.local_accounts import delete_account, made_account
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: mapped
defaults: {update_period: 500ms}
systems:
  home: {}
  cage: {parent: home, policy: cage.policy, machine: {slots: 2, isolation: sandbox}}
"""


@pytest.fixture(scope="module")
def account() -> Iterator[str]:
    with made_account() as name:
        yield name


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory, account: str) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("mapped")
    (folder / "mapped.yaml").write_text(_TOPOLOGY)
    (folder / "cage.policy").write_text(policy(account))
    made = Federation(topology=folder / "mapped.yaml", name="mapped", state=folder / "state", module="home")
    with brought_up(made):
        yield made


def policy(account: str) -> str:
    return f'accept from parent {{ as account "{account}"; limit 100 tasks; }}\njoin {{ allow child when 1 = 1; }}\n'


def test_tasks_have_the_account_also_those_that_begin_after_a_kill_of_the_daemon(
    mapped: Federation, account: str, tmp_path: Path
) -> None:
    array = mapped.submit("--array", "1-8", "--output", "out", "--", "sh", "-c", "sleep 0.5; id -un | tee out; id -Gn")
    eventually(lambda: any(member["state"] == "executing" for member in mapped.members(array)))
    mapped.kill("cage", "daemon")
    assert mapped.run("wait", array).returncode == 0
    for member in range(1, 9):
        name, groups = mapped.run("logs", f"{array}.{member}").stdout.split("\n", 1)
        assert (name, sorted(groups.split())) == (account, sorted((account, f"{account}-more")))
    fetched = mapped.run("fetch", f"{array}.8", "--into", str(tmp_path))
    assert fetched.returncode == 0, fetched.stderr
    assert [file.read_text() for file in tmp_path.rglob("out")] == [f"{account}\n"]


def test_the_machine_notes_the_account_and_the_neighbor_never_learns_it(mapped: Federation, account: str) -> None:
    task = mapped.submit("--", "true")
    assert mapped.run("wait", task).returncode == 0
    assert account not in json.dumps(mapped.status(task))
    assert account not in mapped.run("audit", "decisions").stdout
    eventually(lambda: f"as account {account}" in mapped.run("audit", "decisions", "--module", "cage").stdout)


@pytest.mark.parametrize("name", ["nobody", "no-such-account"])
def test_a_policy_with_an_account_that_no_task_can_have_changes_nothing(
    mapped: Federation, tmp_path: Path, account: str, name: str
) -> None:
    (tmp_path / "worse.policy").write_text(policy(name))
    assert mapped.run("policy", "check", str(tmp_path / "worse.policy")).returncode == 0
    refused = mapped.run("policy", "load", str(tmp_path / "worse.policy"), "--module", "cage")
    assert refused.returncode != 0
    assert f"no task can run as {name}" in refused.stdout + refused.stderr
    task = mapped.submit("--", "id", "-un")
    assert mapped.run("wait", task).returncode == 0
    assert mapped.run("logs", task).stdout == f"{account}\n"


def test_explain_shows_the_account(mapped: Federation, account: str) -> None:
    file = mapped.topology.parent / "cage.policy"
    said = mapped.run("policy", "explain", str(file), "--task", "cpus=1", "--peer", "relation=parent").stdout
    assert f'as account "{account}"' in said, said


def test_when_the_account_is_gone_its_tasks_wait_and_say_why(mapped: Federation, account: str) -> None:
    if os.geteuid() == 0:
        delete_account(account)
    task = mapped.submit("--", "true")
    eventually(lambda: "this host has no such account" in json.dumps(mapped.status(task)))
    assert mapped.status(task)["state"] != "finished"
    mapped.run("cancel", task)
