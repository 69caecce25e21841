"""Kill -9 of anything at random moments under load: nothing is lost, and no task runs twice at a time.

MESSIAHS_CHAOS_SEED replaces the default seed.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, federation
from tests.live.workload import (
    HARMLESS,
    PATIENCE_SECONDS,
    Storm,
    Workload,
    kill_machine,
    kill_process,
    seeded,
    what_befell,
)
from tests.shared_folders import open_to_all

TASKS = 1000
LINES = 60
ORIGIN = "blays"
HOPS = ("xinu", "cs", "purdue", "renaissance", "ecn", "pucc")
EXECUTORS = ("blays", "breddedde", "nyneve", "serc", "xinu", "leonardo", "raphael", "pucc", "mace", "harbor", "quarry")


@pytest.fixture
def campus(tmp_path: Path) -> Iterator[Federation]:
    """Start a campus for one test that harms it."""
    yield from federation("campus", tmp_path, module=ORIGIN)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Make a folder that tasks of any account can write to."""
    with tempfile.TemporaryDirectory() as folder:
        open_to_all(Path(folder))
        yield Path(folder)


def test_two_attempts_at_once_would_be_noticed(shared: Path) -> None:
    load = Workload(folder=shared, tasks=1)
    command = load.command()
    environments = [{**os.environ, "MESSIAHS_ARRAY_INDEX": "1", "MESSIAHS_ATTEMPT": attempt} for attempt in "12"]
    attempts = [subprocess.Popen(command, env=environment) for environment in environments]
    assert [attempt.wait() for attempt in attempts] == [0, 0]
    assert load.times_written() == {1: 2}
    assert len(load.doubles()) == 1


def test_killed_daemons_lose_and_repeat_nothing(campus: Federation, shared: Path) -> None:
    load = Workload(folder=shared, tasks=TASKS)
    with seeded(1993) as dice:
        array = load.submit(campus)
        waiting = campus.start("wait", array)

        def blow() -> None:
            kill_process(campus, dice.choice((ORIGIN, dice.choice(HOPS), dice.choice(EXECUTORS))), process="daemon")

        Storm(workload=load, dice=dice).rage(blow, times=30, waiting=waiting)
        _, err = waiting.communicate(timeout=PATIENCE_SECONDS)
        assert waiting.returncode == 0, err
        assert load.times_written() == dict.fromkeys(range(1, TASKS + 1), 1)
        assert load.doubles() == []
        assert campus.status(array)["counts"] == {"finished": TASKS}
        assert what_befell(campus, array) <= HARMLESS


def test_killed_starters_and_machines_end_attempts_and_the_next_ones_run(campus: Federation, shared: Path) -> None:
    load = Workload(folder=shared, tasks=TASKS)
    with seeded(1993) as dice:
        array = load.submit(campus)
        waiting = campus.start("wait", array)

        def blow() -> None:
            module = dice.choice(EXECUTORS)
            if dice.random() < 0.5:
                kill_machine(campus, module)
            else:
                kill_process(campus, module, process="starter")

        Storm(workload=load, dice=dice).rage(blow, times=20, waiting=waiting)
        _, err = waiting.communicate(timeout=PATIENCE_SECONDS)
        assert waiting.returncode == 0, err
        assert set(load.times_written()) == set(range(1, TASKS + 1))
        assert load.doubles() == []
        assert campus.status(array)["counts"] == {"finished": TASKS}
        _check_attempts(campus, load, array)


def _check_attempts(campus: Federation, load: Workload, array: str) -> None:
    """Check that the history calls every earlier attempt lost that wrote something."""
    members = {member["id"]: member for member in campus.members(array)}
    lost = 0
    for number, attempt in load.written():
        member = members[f"{array}.{number}"]
        ends = {step["attempt"]: step["event"] for step in member["history"]}
        assert ends[attempt] == ("finished" if attempt == member["attempt"] else "lost"), member["history"]
        lost += attempt != member["attempt"]
    events = [step["event"] for member in members.values() for step in member["history"]]
    assert events.count("finished") == TASKS
    assert events.count("lost") >= lost
    assert "lost" in events, "the storm hit nothing"


def test_run_shows_every_line_once_while_daemons_are_killed(own_pair: Federation) -> None:
    script = f"for number in $(seq {LINES}); do echo $number; sleep 0.1; done; exit 3"
    seen = []
    with own_pair.start("run", "--require", '$side eq "right"', "--", "sh", "-c", script) as running:
        assert running.stdout is not None
        for line in running.stdout:
            seen.append(line)
            if len(seen) in (LINES // 4, LINES // 2):
                for module in ("left", "right"):
                    kill_process(own_pair, module, process="daemon")
    assert seen == [f"{number}\n" for number in range(1, LINES + 1)]
    assert running.returncode == 3
    assert own_pair.document("status")["tasks"][-1]["attempt"] == 1
