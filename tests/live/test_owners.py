"""Owners who come and go: real tasks on their machines are suspended, resumed, vacated, killed and moved."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = """version: 1
federation: desks
defaults: {policy: desk.policy, update_period: 500ms}
systems:
  top:  {}
  left: {parent: top, machine: MACHINE}
  right: {parent: top, machine: MACHINE}
"""
POLICY = """policy "desk";
attribute $kind string optional;
accept from any {
    require $here.keyboard_idle default 1h >= 30s else "its owner is at the desk";
    limit 100 tasks;
}
running {
    suspend unless $here.keyboard_idle >= 30s else "the owner is back";
    resume  when   $here.keyboard_idle >= 60s;
}
running tasks where $kind eq "leaving" { vacate when $task.suspended >= 2s grace 2s else "it took too long"; }
running tasks where $kind eq "moving"  { move   when $task.suspended >= 1s grace 10min else "the day begins"; }
running tasks where $kind eq "hungry"  { kill   when $task.mem_used > 32MiB for 1s else "memory"; }
"""
TREE = """
setsid sh -c 'while :; do :; done' &
(setsid sh -c 'trap "" TERM; while :; do :; done' &)
sh -c 'while [ ! -e stop ]; do :; done; true' &
trap 'touch heard; kill %2; exit 0' TERM
echo ready
wait %2
"""
"""Busy processes: one in another session, an orphan that ignores SIGTERM, one in the group, and one that waits."""
_TREE_SIZE = 4
LOCKING = """
exec 9>"$LOCK"; flock -n 9 || { echo overlap; exit 9; }
[ "$MESSIAHS_ATTEMPT" = 2 ] && { echo alone; exit 0; }
setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done
"""
"""Each attempt holds a lock while any process of it runs, and reports a lock held by another; the second one ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desks:
    """Two machines with owners."""

    federation: Federation
    folder: Path

    def use(self, machine: str) -> None:
        """Simulate a key press of the owner of a machine."""
        (self.folder / machine).touch()

    def leave(self, *machines: str) -> None:
        """Set the last use of machines by their owners to ten minutes ago."""
        for machine in machines:
            (self.folder / machine).touch()
            os.utime(self.folder / machine, (time.time() - 600, time.time() - 600))

    def begin(self, *words: str) -> tuple[str, dict[str, Any]]:
        """Submit a task, and wait until it runs."""
        task = self.federation.submit("--env", f"DESKS={self.folder}", *words)
        return task, self.until(task, substate="running")

    def processes_of(self, task: str) -> list[int]:
        """Return every process of a task; other federations on this machine may use the same task ids."""
        said, found = {f"MESSIAHS_TASK_ID={task}".encode(), f"DESKS={self.folder}".encode()}, []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if said.issubset((entry / "environ").read_bytes().split(b"\0")):
                        found.append(int(entry.name))
        return sorted(found)

    def until(self, task: str, **said: object) -> dict[str, Any]:
        """Wait until the status of a task has these values."""
        found: dict[str, Any] = {}

        def is_so() -> bool:
            found.update(self.federation.status(task))
            return all(found[name] == value for name, value in said.items())

        eventually(is_so)
        return found


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desks]:
    """Share two machines among the tests of this file."""
    folder = tmp_path_factory.mktemp("desks")
    topology = TOPOLOGY
    for name in ("left", "right"):
        topology = topology.replace("MACHINE", fixed_machine(console=str(folder / name)), 1)
    (folder / "desks.yaml").write_text(topology)
    (folder / "desk.policy").write_text(POLICY)
    made = Desks(
        federation=Federation(topology=folder / "desks.yaml", name="desks", state=folder / "state", module="top"),
        folder=folder,
    )
    made.leave("left", "right")
    with brought_up(made.federation):
        yield made


@pytest.fixture(autouse=True)
def nobody_is_there(desks: Desks) -> None:
    """Start every test without owners."""
    desks.leave("left", "right")


def lock_in(folder: Path) -> Path:
    """Make a file that tasks of any account can lock."""
    lock = folder / "lock"
    lock.touch()
    lock.chmod(0o666)
    return lock


def fields_of(process: int) -> list[str]:
    """Return the fields of a process' stat file, from its state on; a process that is gone has state X."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return ["X"] * 20


def ticks_of(processes: list[int]) -> list[int]:
    """Return the processor time that processes have used."""
    return [int(fields_of(process)[11]) + int(fields_of(process)[12]) for process in processes]


def states_of(processes: list[int]) -> set[str]:
    """Return the state letters of processes."""
    return {fields_of(process)[0] for process in processes}


def events_of(document: dict[str, Any]) -> list[str]:
    """Return the steps in the life of a task."""
    return [entry["event"] for entry in document["history"]]


def seconds_since(event: str, document: dict[str, Any]) -> float:
    """Return the time since the last step of a kind in the life of a task."""
    (*_, at) = (entry["at"] for entry in document["history"] if entry["event"] == event)
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()


def test_a_task_is_suspended_while_the_owner_is_present_and_resumes_afterwards(desks: Desks) -> None:
    task, running = desks.begin("--", "sh", "-c", TREE)
    eventually(lambda: len(desks.processes_of(task)) == _TREE_SIZE)
    processes = desks.processes_of(task)
    desks.use(running["executed_on"])
    held = desks.until(task, substate="suspended")
    assert held["text"] == "the owner is back"
    assert held["suspended_since"] is not None
    assert (
        f"suspended by the owner of {running['executed_on']}: the owner is back"
        in desks.federation.run("status", task).stdout
    )
    assert states_of(processes) == {"T"}
    before = ticks_of(processes)
    desks.use(running["executed_on"])
    # The rules are evaluated every second: at least three times until this is reported.
    eventually(lambda: seconds_since("suspended", desks.until(task, substate="suspended")) >= 3)
    assert held["attempt"] == desks.federation.status(task)["attempt"] == 1
    assert (ticks_of(processes), desks.processes_of(task)) == (before, processes)
    desks.leave(running["executed_on"])
    desks.until(task, substate="running")
    eventually(lambda: all(now > then for now, then in zip(ticks_of(processes)[1:], before[1:], strict=True)))
    assert desks.federation.run("cancel", task).returncode == 0
    desks.until(task, state="killed")
    # A cancelled task whose machine is slow to report is shown as ended; what it used follows.
    eventually(lambda: desks.federation.status(task)["usage"] is not None)
    ended = desks.federation.status(task)
    assert (ended["suspended_s"] >= 3, ended["suspended_since"]) == (True, None)
    assert (ended["usage"]["suspended_s"] >= 3, ended["usage"]["cpu_s"] > 0) == (True, True)
    assert "suspended" in desks.federation.run("status", task).stdout.splitlines()[1]
    assert [event for event in events_of(ended) if event in ("suspended", "resumed")] == ["suspended", "resumed"]
    eventually(lambda: desks.processes_of(task) == [])


def test_a_suspended_task_outlives_its_daemon_and_resumes_by_rule(desks: Desks) -> None:
    task, running = desks.begin("--", "sh", "-c", TREE)
    machine = running["executed_on"]
    eventually(lambda: len(desks.processes_of(task)) == _TREE_SIZE)
    processes = desks.processes_of(task)
    desks.use(machine)
    desks.until(task, substate="suspended")
    eventually(lambda: states_of(processes) == {"T"})
    before, daemon = ticks_of(processes), desks.federation.pid(machine, "daemon")
    os.kill(daemon, signal.SIGKILL)
    desks.use(machine)
    eventually(lambda: desks.federation.pid(machine, "daemon") != daemon)
    eventually(lambda: desks.federation.run("module", "vectors", "--module", machine).returncode == 0)
    assert (states_of(processes), ticks_of(processes)) == ({"T"}, before)
    assert desks.federation.status(task)["substate"] == "suspended"
    desks.leave(machine)
    resumed = desks.until(task, substate="running")
    assert (resumed["attempt"], desks.processes_of(task)) == (1, processes)
    desks.federation.run("cancel", task)
    desks.until(task, state="killed")


def test_a_vacated_task_gets_sigterm_and_its_next_attempt_runs_elsewhere(desks: Desks) -> None:
    script = "if [ $MESSIAHS_ATTEMPT = 2 ]; then exit 0; fi; trap 'echo heard' TERM; while :; do sleep 0.1; done"
    task, running = desks.begin("--set", "kind=leaving", "--", "sh", "-c", script)
    first = running["executed_on"]
    desks.use(first)
    ended = desks.until(task, state="finished")
    assert (ended["attempt"], ended["exit_code"]) == (2, 0)
    assert ended["executed_on"] != first
    steps = [(entry["event"], entry["module"]) for entry in ended["history"]]
    assert ("vacating", first) in steps
    assert ("vacated", first) in steps
    (vacated,) = [entry for entry in ended["history"] if entry["event"] == "vacated"]
    assert vacated["text"] == "it took too long"


def test_a_task_with_more_memory_than_its_owner_grants_is_killed_and_runs_elsewhere(desks: Desks) -> None:
    script = (
        "import os, time; own = os.environ['MESSIAHS_ATTEMPT'] == '1' and bytearray(64 << 20); own and time.sleep(600)"
    )
    task = desks.federation.submit("--mem", "256MiB", "--set", "kind=hungry", "--", "python3", "-c", script)
    ended = desks.until(task, state="finished")
    assert (ended["attempt"], ended["exit_code"]) == (2, 0)
    (revoked,) = [entry for entry in ended["history"] if entry["event"] == "revoked"]
    assert (revoked["text"], revoked["attempt"]) == ("memory", 1)
    assert revoked["module"] != ended["executed_on"]


def test_a_task_moves_to_another_machine_and_its_attempts_never_overlap(desks: Desks, shared: Path) -> None:
    lock = lock_in(shared)
    task, running = desks.begin("--set", "kind=moving", "--env", f"LOCK={lock}", "--", "sh", "-c", LOCKING)
    first = running["executed_on"]
    desks.use(first)
    ended = desks.until(task, state="finished")
    assert (ended["exit_code"], ended["attempt"]) == (0, 2)
    assert ended["executed_on"] != first
    steps = [(entry["event"], entry["attempt"]) for entry in ended["history"] if entry["event"] != "vacating"]
    assert steps == [("bound", 1), ("suspended", 1), ("moving", 1), ("moved", 1), ("bound", 2), ("finished", 2)]
    (moving,) = [entry for entry in ended["history"] if entry["event"] == "moving"]
    assert moving["text"] == "the day begins"
    assert desks.processes_of(task) == []
