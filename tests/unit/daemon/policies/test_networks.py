"""Limits of the network in a policy: checked when it is to be in force at the machine whose tasks they concern."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.config.settings import AUTOMATIC, BUBBLEWRAP, PROCESS, SANDBOX, MachineSettings
from messiahs.daemon.policies.in_force import Policies
from messiahs.errors import PolicyError
from messiahs.executor.attempt_values import TASK_PATH
from messiahs.executor.starter.sandbox.outbound import why_no_outbound
from tests.unit.daemon.policies.test_accounts import policies, settings

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose modules alone have sandboxes of their own")


def limited(*networks: str) -> str:
    """Return a policy with these networks, one block each, in which a network is limited in line 2, 3, ..."""
    blocks = (
        f'accept from "peer{place}" {{ limit 1 tasks; limit network to {network}; }}'
        for place, network in enumerate(networks)
    )
    return "\n".join(('policy "limited";', *blocks))


def loaded(folder: Path, machine: MachineSettings | None) -> Policies:
    return policies(settings(folder, machine))


def problems(before: Policies, text: str) -> list[tuple[int, int, str, str]]:
    document = before.document()
    with pytest.raises(PolicyError) as raised:
        before.load(text, "limited.policy")
    assert before.document() == document
    return [(each.line, each.column, each.message, each.hint) for each in raised.value.problems]


@needs_root
@pytest.mark.parametrize(
    ("network", "limits"),
    [("none", ["none"]), ("loopback", ["none", "loopback"]), ("host", ["none", "loopback", "host"])],
)
def test_a_policy_limits_tasks_to_the_network_of_the_machine_or_less(
    tmp_path: Path, network: str, limits: list[str]
) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=SANDBOX, network=network))
    made.load(limited(*limits), "limited.policy")
    assert made.document()["name"] == "limited"


def test_boxes_of_bubblewrap_need_no_root_for_a_limit(tmp_path: Path) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="host"))
    made.load(limited("none", "loopback", "host"), "limited.policy")
    assert made.document()["name"] == "limited"


def test_every_network_that_is_wider_than_that_of_the_machine_is_refused_with_its_place(tmp_path: Path) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="loopback"))
    why = "tasks on this machine reach `loopback` at most, and a policy gives them no more"
    hint = "limit them to that or less, or write `network: {}` in the `machine` of this system"
    assert problems(made, limited("host", "none")) == [(2, 38, why, hint.format("host"))]


@needs_root
@pytest.mark.parametrize("isolation", [SANDBOX, BUBBLEWRAP])
@pytest.mark.parametrize("network", ["none", "loopback"])
def test_a_machine_that_reaches_less_is_advised_to_have_outbound(tmp_path: Path, isolation: str, network: str) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=isolation, network=network))
    ((_, _, message, hint),) = problems(made, limited("outbound"))
    assert message.startswith(f"tasks on this machine reach `{network}` at most")
    assert "`network: outbound`" in hint


@needs_root
@pytest.mark.parametrize("isolation", [SANDBOX, BUBBLEWRAP])
def test_tasks_with_the_network_of_the_host_are_limited_to_outbound_where_that_works(
    tmp_path: Path, isolation: str
) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=isolation, network="host"))
    if why_not := why_no_outbound(TASK_PATH):
        ((_, _, message, hint),) = problems(made, limited("outbound"))
        assert (message, hint) == (why_not, "limit them to loopback or none until then")
    else:
        made.load(limited("outbound"), "limited.policy")
        assert made.document()["name"] == "limited"


def test_the_program_of_outbound_is_looked_for_where_the_starter_of_an_ordinary_account_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="host"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    ((_, _, message, _),) = problems(made, limited("outbound"))
    assert message == why_no_outbound("/nowhere")


@pytest.mark.parametrize("isolation", [PROCESS, AUTOMATIC])
@pytest.mark.parametrize("network", ["none", "host"])
def test_a_machine_on_which_nobody_has_chosen_sandboxes_refuses_every_limit(
    tmp_path: Path, isolation: str, network: str
) -> None:
    made = loaded(tmp_path, MachineSettings(isolation=isolation))
    ((line, column, message, hint),) = problems(made, limited(network))
    assert (line, column) == (2, 38)
    assert message == "the network of tasks can be limited only in sandboxes: processes have that of the host"
    assert "isolation: sandbox" in hint


def test_a_system_without_a_machine_may_have_the_policy_of_one_that_has(tmp_path: Path) -> None:
    made = loaded(tmp_path, None)
    made.load(limited("none"), "limited.policy")
    assert made.document()["name"] == "limited"


def test_settings_with_a_narrower_network_are_refused_while_the_policy_asks_for_more(tmp_path: Path) -> None:
    before = settings(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="host"))
    made = policies(before)
    made.load(limited("loopback"), "limited.policy")
    for machine in (MachineSettings(isolation=BUBBLEWRAP, network="none"), MachineSettings(isolation=PROCESS)):
        with pytest.raises(PolicyError):
            made.prepared(replace(before, machine=machine))
    assert made.prepared(before)() == ""


def test_a_module_starts_with_a_policy_that_asks_for_more_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="host")).load(limited("loopback"), "limited.policy")
    after = loaded(tmp_path, MachineSettings(isolation=BUBBLEWRAP, network="none"))
    assert after.document()["name"] == "limited"
    assert "tasks on this machine reach `none` at most" in caplog.text
