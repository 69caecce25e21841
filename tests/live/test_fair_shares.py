"""Users of a host who share the places of a module that root runs: turns, priorities and quotas."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.shared_host import Host, shared_host
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
SHARED = """
version: 1
federation: shared
systems:
  turns: {machine: {isolation: process, slots: 2}, policy: turns.policy}
  quota: {machine: {isolation: process, slots: 2}, policy: quota.policy}
"""
TURNS = "accept from users { limit 1 tasks; }"
"""The machine is never full, so only a claim that gives way leaves its place to another user."""
QUOTA = "accept from users { limit 1 slots per $user; limit 2s cpu per $user per day; }"
RULE, SLOTS_RULE = "limit 2s cpu per $user per day", "limit 1 slots per $user"
MEMBERS, URGENT = 1_500, 20
PLACES = ("--state", "/var/lib/messiahs", "--sockets", "/run/messiahs")


def start(host: Host) -> None:
    began = host.run("root", "up", "/var/lib/shared.yaml", "--detach", "--wait", "120", *PLACES)
    assert began.returncode == 0, began.stderr


def stop(host: Host) -> None:
    ended = host.run("root", "down", "/var/lib/shared.yaml", "--state", "/var/lib/messiahs")
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with shared_host(tmp_path_factory.mktemp("host")) as made:
        for name, text in (("shared.yaml", SHARED), ("turns.policy", TURNS), ("quota.policy", QUOTA)):
            made.path(f"/var/lib/{name}").write_text(text)
        try:
            start(made)
            yield made
        finally:
            stop(made)


def submit(host: Host, person: str, *words: str) -> str:
    done = host.run(person, "submit", "--quiet", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def status(host: Host, person: str, task: str, /) -> dict[str, Any]:
    (document,) = json.loads(host.run(person, "status", task, "--json").stdout)["tasks"]
    assert isinstance(document, dict)
    return document


def rules(host: Host, person: str, task: str, /) -> list[str]:
    return [reason["rule"] for reason in status(host, person, task)["reasons"]]


def used_s(host: Host, person: str) -> float:
    lines = json.loads(host.run("root", "accounting", "--by", "user", "--module", "quota", "--json").stdout)["rows"]
    return sum(float(row["here_s"]) for row in lines if row["user"] == person)


def test_the_first_task_of_a_user_waits_for_one_of_another_and_priorities_are_among_the_own(host: Host) -> None:
    many = submit(host, "ann", "--module", "turns", "--array", f"1-{MEMBERS}", "--", "sleep", "0.2")
    eventually(lambda: status(host, "ann", many)["counts"].get("finished"))
    done = host.run("bob", "run", "--module", "turns", "--", "true")
    assert done.returncode == 0, done.stderr
    finished = status(host, "ann", many)["counts"]["finished"]
    eventually(lambda: status(host, "ann", many)["counts"]["finished"] > finished)
    late, urgent = (
        submit(host, "ann", "--module", "turns", "--priority", priority, "--array", f"1-{count}", "--", "sleep", "0.2")
        for priority, count in (("-1", 2 * URGENT), ("100", URGENT))
    )
    assert host.run("ann", "wait", urgent).returncode == 0
    assert status(host, "ann", urgent)["priority"] == 100
    # A place that becomes free may be taken by whoever asks in that moment, so a few of the others may have run.
    assert status(host, "ann", late)["counts"].get("finished", 0) < URGENT
    assert status(host, "ann", many)["counts"]["queued"] > 1_000
    assert host.run("ann", "cancel", late, many).returncode == 0


def test_a_user_who_has_all_slots_of_a_quota_waits_beside_a_free_one_that_others_get(host: Host) -> None:
    held = submit(host, "ann", "--module", "quota", "--", "sleep", "1000")
    eventually(lambda: status(host, "ann", held)["substate"] == "running")
    more = submit(host, "ann", "--module", "quota", "--", "true")
    eventually(lambda: SLOTS_RULE in rules(host, "ann", more))
    assert host.run("bob", "run", "--module", "quota", "--", "true").returncode == 0
    assert status(host, "ann", more)["attempt"] == 0
    assert host.run("ann", "cancel", held, more).returncode == 0


def test_a_user_whose_day_is_used_up_waits_and_knows_the_rule_also_after_a_restart(host: Host) -> None:
    assert host.run("eve", "run", "--module", "quota", "--", "sleep", "3").returncode == 0
    eventually(lambda: used_s(host, "eve") >= 2)
    more = submit(host, "eve", "--module", "quota", "--", "true")
    eventually(lambda: RULE in rules(host, "eve", more))
    assert RULE in host.run("eve", "explain", more).stdout
    assert host.run("bob", "run", "--module", "quota", "--", "true").returncode == 0
    stop(host)
    start(host)
    eventually(lambda: RULE in rules(host, "eve", more))
    assert status(host, "eve", more)["attempt"] == 0
