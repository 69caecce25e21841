"""Stopped processes and leases: an attempt without a running daemon ends before the next one begins.

With every beat the task writes its attempt and the time (since boot, the same for all processes).
"""

import json
import os
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from messiahs.core.interface.rows import GrantedClaimRow, RowKind
from messiahs.trace.format.rows import decode_row
from tests.live.conftest import Federation
from tests.live.relay import relayed
from tests.shared_folders import open_to_all
from tests.waiting import eventually

LEASE_SECONDS = 5
_TOPOLOGY = """
version: 1
federation: leases
defaults: {{policy: {folder}/short.policy, update_period: 500ms}}
systems:
  home: {{}}
  one: {{parent: home, machine: {{isolation: process, slots: 1}}}}
  two: {{parent: home, machine: {{isolation: process, slots: 1}}}}
"""
_POLICY = f"""
policy "a short lease" version 1;
accept from any {{ }}
accept from users {{ }}
timeouts {{ lease {LEASE_SECONDS}s; }}
"""
_BEATING = """
while [ ! -e "$0/go" ]; do
    read -r up idle </proc/uptime
    echo "$MESSIAHS_ATTEMPT $up" >>"$0/beats"
    sleep 0.1
done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beating:
    """One task that beats until it is ended."""

    federation: Federation
    folder: Path
    task: str

    def beats(self, attempt: int) -> list[float]:
        """Return the seconds since boot at which an attempt beat."""
        lines = [line.split() for line in (self.folder / "beats").read_text().splitlines()]
        return [float(up) for number, up in lines if int(number) == attempt]

    def await_beats(self, attempt: int) -> None:
        """Wait until an attempt beats again."""
        before = len(self.beats(attempt)) if (self.folder / "beats").exists() else 0
        eventually(lambda: (self.folder / "beats").exists() and len(self.beats(attempt)) > before)

    def executor(self) -> str:
        """Return the machine of the present attempt."""
        return str(self.federation.status(self.task)["executed_on"])

    def is_gone(self, attempt: int) -> bool:
        """Return whether no process of an attempt is left."""
        return processes_of(self.task, attempt) == []

    def finish(self) -> dict[str, Any]:
        """End the task, and return its status."""
        (self.folder / "go").touch()
        done = self.federation.run("wait", self.task)
        assert done.returncode == 0, done.stderr
        return self.federation.status(self.task)

    def check_second(self) -> None:
        """End the task, and check that its second attempt ends then, and began after the end of the first."""
        status = self.finish()
        events = [(step["attempt"], step["event"]) for step in status["history"]]
        assert (status["state"], status["attempt"]) == ("finished", 2), events
        assert events.count((2, "finished")) == 1
        assert max(self.beats(1)) < min(self.beats(2))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a module with users and two machines below it, all with a short lease."""
    folder = tmp_path_factory.mktemp("leases")
    (folder / "short.policy").write_text(_POLICY)
    topology = folder / "leases.yaml"
    topology.write_text(_TOPOLOGY.format(folder=folder))
    made = Federation(topology=topology, name="leases", state=folder, module="home")
    made.up()
    try:
        yield made
    finally:
        made.down()


@pytest.fixture
def beating(short: Federation) -> Iterator[Beating]:
    """Return a running task."""
    with beating_task(short) as made:
        yield made


def test_without_its_daemon_the_starter_ends_an_attempt_whose_lease_runs_out(beating: Beating) -> None:
    short, executor = beating.federation, beating.executor()
    with stopped([short.pid(executor, "daemon")]):
        eventually(lambda: beating.is_gone(1))
        beating.await_beats(2)
        assert beating.executor() != executor
    beating.check_second()


def test_a_silent_starter_is_killed_with_its_tasks(beating: Beating) -> None:
    short, executor = beating.federation, beating.executor()
    with stopped([short.pid(executor, "starter")]):
        eventually(lambda: beating.is_gone(1))
        beating.await_beats(2)
    beating.check_second()


def test_an_attempt_ends_with_its_lease_though_neither_daemon_nor_starter_runs(beating: Beating) -> None:
    short, executor = beating.federation, beating.executor()
    with stopped([short.pid(executor, "starter"), short.pid(executor, "daemon")]):
        eventually(lambda: beating.is_gone(1))
        beating.await_beats(2)
        assert beating.executor() != executor
    beating.check_second()


def test_an_origin_stopped_past_the_lease_starts_a_new_attempt(beating: Beating) -> None:
    with stopped([beating.federation.pid("home", "daemon")]):
        eventually(lambda: beating.is_gone(1))
    beating.await_beats(2)
    beating.check_second()


def test_an_origin_that_was_down_past_the_lease_learns_of_a_task_that_ended(beating: Beating) -> None:
    short, executor = beating.federation, beating.executor()
    supervisor = json.loads((short.state / short.name / "supervisor.pid").read_text())["pid"]
    with stopped([supervisor]):
        short.kill("home", "daemon")
        (beating.folder / "go").touch()
        eventually(lambda: beating.is_gone(1))
        # Nothing answers a renewal.
        eventually(lambda: leases_have_run_out(short.folder(executor)))
    assert beating.finish()["attempt"] == 1


def test_an_origin_stopped_for_less_than_the_lease_loses_nothing(beating: Beating) -> None:
    with stopped([beating.federation.pid("home", "daemon")]):
        beating.await_beats(1)
    beating.await_beats(1)
    assert beating.finish()["attempt"] == 1


def test_a_machine_that_thaws_ends_an_attempt_that_was_replaced_meanwhile(beating: Beating) -> None:
    short, executor = beating.federation, beating.executor()
    machine = [short.pid(executor, "starter"), short.pid(executor, "daemon")]
    with stopped([*machine, *processes_of(beating.task, 1)]):
        beating.await_beats(2)
        assert beating.executor() != executor
    eventually(lambda: beating.is_gone(1))
    beating.await_beats(2)
    status = beating.finish()
    assert (status["state"], status["attempt"], status["executed_on"] != executor) == ("finished", 2, True)


def test_a_client_of_a_stopped_module_is_told_so_and_answered_when_it_continues(short: Federation) -> None:
    daemon = short.pid("home", "daemon")
    with stopped([daemon]):
        asking = short.start("status")
        assert asking.stderr is not None
        text = (
            f"the module `home` does not answer: its process {daemon} is stopped; `kill -CONT {daemon}` lets it go on"
        )
        assert asking.stderr.readline() == f"{text} (still waiting)\n"
    asking.communicate()
    assert asking.returncode == 0


def test_an_attempt_behind_a_cut_link_ends_before_the_next_one_begins(short: Federation) -> None:
    with (
        relayed(short, "one", parent="home") as to_one,
        relayed(short, "two", parent="home") as to_two,
        beating_task(short) as beating,
    ):
        executor = beating.executor()
        {"one": to_one, "two": to_two}[executor].cut()
        eventually(lambda: beating.is_gone(1))
        beating.await_beats(2)
        assert beating.executor() != executor
        to_one.mend()
        to_two.mend()
        beating.check_second()


@contextmanager
def beating_task(short: Federation) -> Iterator[Beating]:
    """Return a running task, and end it afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        open_to_all(folder)
        task = short.submit("--", "sh", "-c", _BEATING, name)
        made = Beating(federation=short, folder=folder, task=task)
        made.await_beats(1)
        yield made
        (folder / "go").touch()
        short.run("wait", task)


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """Stop processes, and continue those that still exist afterwards."""
    for process in processes:
        # A process of a task may have ended in the meantime.
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def leases_have_run_out(folder: Path) -> bool:
    """Return whether a machine has stored that the lease of each claim on it has ended."""
    query = "SELECT kind, key, body FROM rows WHERE kind = ?"
    with closing(sqlite3.connect(folder / "module.db")) as connection:
        claims = [decode_row(*each) for each in connection.execute(query, (RowKind.GRANTED_CLAIM,))]
    assert claims
    return all(isinstance(claim, GrantedClaimRow) and claim.is_ending for claim in claims)


def processes_of(task: str, attempt: int) -> list[int]:
    """Return the processes of an attempt, found by their environment."""
    known = {f"MESSIAHS_TASK_ID={task}".encode(), f"MESSIAHS_ATTEMPT={attempt}".encode()}
    return [int(entry.name) for entry in Path("/proc").iterdir() if known <= _environment(entry)]


def _environment(entry: Path) -> set[bytes]:
    try:
        return set((entry / "environ").read_bytes().split(b"\0")) if entry.name.isdigit() else set()
    except OSError:
        return set()
