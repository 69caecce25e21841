"""A link that is cut, held, slow or half closed: tasks continue, and their results arrive when it heals."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import messiahs
from messiahs.cli.output import local_time
from tests.live.conftest import Federation, shared_folder
from tests.live.relay import Relay, Way, heard_by, relayed
from tests.live.workload import HARMLESS, what_befell
from tests.waiting import eventually, let_pass

ON_RIGHT = ("--require", '$side eq "right"')
TASKS = 60
HARM_SECONDS = 1.5


@pytest.fixture(scope="module")
def relay(pair: Federation) -> Iterator[Relay]:
    """Share the link of the pair, routed through a relay."""
    with relayed(pair, "right", parent="left") as made:
        yield made


@pytest.fixture
def link(relay: Relay, pair: Federation) -> Iterator[Relay]:
    """Return an intact link, and restore it afterwards."""
    yield relay
    relay.mend()
    eventually(lambda: "right" in heard_by(pair, "left") and "left" in heard_by(pair, "right"))


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that tasks of any account can write to."""
    return shared_folder(tmp_path_factory)


def test_a_task_that_is_cancelled_while_its_machine_cannot_be_reached_is_killed_at_once(
    pair: Federation, link: Relay
) -> None:
    task = pair.submit(*ON_RIGHT, "--", "sleep", "1000")
    eventually(lambda: pair.status(task)["substate"] == "running")
    link.hold(Way.UP, Way.DOWN)
    assert pair.run("cancel", task).returncode == 0
    shown = pair.status(task)
    assert (shown["state"], shown["may_run_on"], shown["ended_at"]) == ("killed", "right", None)
    assert f"{task} may run at right until {local_time(shown['may_run_until'])}" in pair.run("status", task).stdout
    assert f"  may run at right until {local_time(shown['may_run_until'])}: " in pair.run("explain", task).stdout
    with messiahs.connect("left", pair.state) as client, pytest.raises(messiahs.ClientError) as caught:
        client.fetch(task)
    assert f"{task} may run at right until {shown['may_run_until']}: its end has not been" in str(caught.value)
    kept = pair.run("clean", task)
    assert kept.returncode == 1
    until = shown["may_run_until"]
    assert kept.stderr == f"messiahs: {task} may run at right until {until}: its end has not been reported\n"
    link.mend()
    eventually(lambda: pair.status(task)["ended_at"] is not None)
    ended = pair.status(task)
    assert (ended["state"], ended["may_run_on"], ended["may_run_until"]) == ("killed", None, None)


@pytest.mark.parametrize(
    "harm",
    [
        Relay.cut,
        lambda link: link.hold(Way.UP, Way.DOWN),
        lambda link: link.hold(Way.UP),
        lambda link: link.hold(Way.DOWN),
        lambda link: link.half_close(Way.UP),
        lambda link: link.half_close(Way.DOWN),
        lambda link: link.slow(0.2),
    ],
    ids=["cut", "held", "held upward", "held downward", "half closed upward", "half closed downward", "slow"],
)
def test_tasks_survive_failures_of_their_link(
    pair: Federation, link: Relay, shared: Path, harm: Callable[[Relay], None]
) -> None:
    script = f"sleep 0.05; echo $MESSIAHS_ARRAY_INDEX >> {shared}/numbers"
    array = pair.submit(*ON_RIGHT, "--array", f"1-{TASKS}", "--", "sh", "-c", script)
    eventually(lambda: len(_lines(shared / "numbers")) >= TASKS // 4)
    harm(link)
    let_pass(HARM_SECONDS)
    link.mend()
    assert pair.run("wait", array).returncode == 0
    assert Counter(_lines(shared / "numbers")) == {str(number): 1 for number in range(1, TASKS + 1)}
    assert what_befell(pair, array) <= HARMLESS


def test_a_silent_neighbor_leaves_the_sums_and_returns(pair: Federation, link: Relay) -> None:
    eventually(lambda: _machines(pair, "left", "up") == 2)
    link.hold(Way.UP)
    eventually(lambda: _machines(pair, "left", "up") == 1)
    assert "right" not in heard_by(pair, "left")
    link.mend()
    eventually(lambda: _machines(pair, "left", "up") == 2)


def test_a_task_continues_while_its_link_is_silent_for_longer_than_a_connection_lasts(
    pair: Federation, link: Relay, shared: Path
) -> None:
    script = f"while [ ! -e {shared}/go ]; do sleep 0.1; done; echo $MESSIAHS_ATTEMPT >> {shared}/numbers; echo done"
    task = pair.submit(*ON_RIGHT, "--", "sh", "-c", script)
    eventually(lambda: pair.status(task)["substate"] == "running")
    before = link.connections
    link.hold(Way.UP, Way.DOWN)
    # Both sides give up the connection, and the child dials again, in vain.
    eventually(lambda: link.connections > before)
    (shared / "go").touch()
    eventually(lambda: _lines(shared / "numbers") == ["1"])
    link.mend()
    assert pair.run("wait", task).returncode == 0
    status = pair.status(task)
    assert (status["state"], status["attempt"]) == ("finished", 1)
    assert pair.run("logs", task).stdout == "done\n"


def _machines(pair: Federation, module: str, way: str) -> int:
    return int(pair.vectors(module)[way]["machines"])


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
