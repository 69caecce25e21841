"""Tasks of a neighbor that reach less of the network than those of the own users, by the policy of the machine."""

import json
from collections.abc import Iterator

import pytest

from tests.live.conftest import Federation, brought_up
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: limited
defaults: {update_period: 500ms}
systems:
  home: {}
  cage: {parent: home, policy: cage.policy, machine: {slots: 2, isolation: %s, network: loopback}}
"""
_CONNECT = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
print("reaches itself")
"""
_SCRIPT = f"sleep 0.5; python3 -c '{_CONNECT}' 2>/dev/null || echo reaches nothing"


@pytest.fixture(scope="module", params=["sandbox", "bubblewrap"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("limited")
    (folder / "limited.yaml").write_text(_TOPOLOGY % request.param)
    (folder / "cage.policy").write_text(policy("none"))
    made = Federation(topology=folder / "limited.yaml", name="limited", state=folder / "state", module="home")
    with brought_up(made):
        yield made


def policy(network: str) -> str:
    return (
        f"accept from parent {{ limit network to {network}; limit 100 tasks; }}\njoin {{ allow child when 1 = 1; }}\n"
    )


def said_by(limited: Federation, *words: str) -> str:
    done = limited.run("run", *words, "--", "sh", "-c", _SCRIPT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_tasks_of_the_neighbor_reach_less_than_those_of_the_own_users_also_after_a_kill_of_the_daemon(
    limited: Federation,
) -> None:
    array = limited.submit("--array", "1-6", "--", "sh", "-c", _SCRIPT)
    eventually(lambda: any(member["state"] == "executing" for member in limited.members(array)))
    limited.kill("cage", "daemon")
    assert limited.run("wait", array).returncode == 0
    said = [limited.run("logs", f"{array}.{member}").stdout.strip() for member in range(1, 7)]
    assert said == ["reaches nothing"] * 6
    assert said_by(limited, "--module", "cage") == "reaches itself"
    assert said_by(limited) == "reaches nothing"


def test_the_machine_notes_the_limit_and_the_neighbor_never_learns_it(limited: Federation) -> None:
    task = limited.submit("--", "true")
    assert limited.run("wait", task).returncode == 0
    text = "with network none at most"
    assert text not in json.dumps(limited.status(task)) + limited.run("audit", "decisions").stdout
    eventually(lambda: text in limited.run("audit", "decisions", "--module", "cage").stdout)


def test_a_policy_that_asks_for_more_than_the_machine_gives_changes_nothing(limited: Federation) -> None:
    wider = limited.topology.parent / "wider.policy"
    wider.write_text(policy("host"))
    assert limited.run("policy", "check", str(wider)).returncode == 0
    refused = limited.run("policy", "load", str(wider), "--module", "cage")
    assert refused.returncode != 0
    assert "tasks on this machine reach `loopback` at most" in refused.stdout + refused.stderr
    assert said_by(limited) == "reaches nothing"


def test_explain_shows_the_limit(limited: Federation) -> None:
    file = limited.topology.parent / "cage.policy"
    said = limited.run("policy", "explain", str(file), "--task", "cpus=1", "--peer", "relation=parent").stdout
    assert "limit network to none" in said, said
