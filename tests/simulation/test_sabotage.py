"""The swarm can fail: when a rule is broken on purpose, some of a few runs report it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from messiahs.core.executor import claims
from messiahs.core.interface.actions import Action, DiscardAttempt, Forget, StartAttempt, Store
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import AttemptRow, HeldClaimRow, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import HOUR, Instant, after
from messiahs.core.origin import placement, retry, task_status
from messiahs.core.relay import byte_route
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim
from messiahs.core.update import outgoing
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import Vector
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import ExecutorAction, SimulatedMachine
from messiahs.sim.swarm import run_seed
from messiahs.sim.world.disk import Disk

KNOWN = (7, 14, 2, 45)
"""Some of these seeds are known to notice."""
SEEDS = (*KNOWN, 20, *range(30, 90))
"""The first of these seeds that notices is enough."""


def _failures(sabotage: Callable[[SimulatedFederation], None], seeds: Sequence[int]) -> Iterator[str]:
    for seed in seeds:
        failure = run_seed(seed, sabotage=sabotage).failure
        if failure is not None:
            yield failure.text


def _first_failure(sabotage: Callable[[SimulatedFederation], None]) -> str:
    return next(_failures(sabotage, SEEDS), "")


def _nothing(federation: SimulatedFederation) -> None:
    del federation


class LosingDisk(Disk):
    """Loses every row of some kind."""

    def __init__(self, kind: type[object]) -> None:
        super().__init__()
        self._kind = kind

    def commit(self, writes: Sequence[Store | Forget], now: Instant) -> None:
        """Commit the other rows."""
        kept = [one for one in writes if not isinstance(one, Store) or not isinstance(one.row, self._kind)]
        super().commit(kept, now)


class RestlessMachine(SimulatedMachine):
    """Starts a running task again whenever it is told to start it."""

    def perform(self, action: ExecutorAction) -> None:
        """Start it at once, beside the first one."""
        held = self._table.attempts.get(action.attempt) if isinstance(action, StartAttempt) else None
        if isinstance(action, StartAttempt) and held is not None and held.began_at:
            self._parts.watcher.began(self._parts.system, action.attempt, action)
        super().perform(action)


class CrowdedMachine(SimulatedMachine):
    """Gives each claim one place too many."""

    def perform(self, action: ExecutorAction) -> None:
        """Start more than was promised."""
        super().perform(replace(action, places=action.places + 1) if isinstance(action, StartAttempt) else action)


class EverlastingMachine(SimulatedMachine):
    """Lets a task continue after its lease has run out, or after it should be ended."""

    def perform(self, action: ExecutorAction) -> None:
        """Treat every lease as lasting an hour."""
        if isinstance(action, StartAttempt):
            super().perform(replace(action, lease_until=after(action.lease_until, HOUR)))
        elif isinstance(action, DiscardAttempt):
            super().perform(action)


@pytest.mark.parametrize("kind", [TaskRow, AttemptRow, HeldClaimRow])
def test_a_disk_that_loses_rows_is_noticed(kind: type[object]) -> None:
    def sabotage(federation: SimulatedFederation) -> None:
        for host in federation.members.values():
            host.disk = LosingDisk(kind)

    assert _first_failure(sabotage)


@pytest.mark.parametrize(
    ("machine", "known", "consequences"),
    [
        (RestlessMachine, (7, 52), (r"begins on ([\w-]+), and did so on \1 before",)),
        (CrowdedMachine, (12, 14), ("runs tasks that take",)),
        # A task that should have ended takes the place of another, overlaps its next attempt, or is followed too late.
        (EverlastingMachine, (), ("runs tasks that take", "at once", r"begins on [\w-]+ after attempt \d+ was bound")),
    ],
)
def test_a_machine_that_breaks_its_contract_is_noticed(
    machine: type[SimulatedMachine], known: tuple[int, ...], consequences: tuple[str, ...]
) -> None:
    def sabotage(federation: SimulatedFederation) -> None:
        for host in federation.members.values():
            if host.machine is not None:
                host.machine.__class__ = machine

    failures = list(islice(_failures(sabotage, (*known, *SEEDS)), 2))
    assert failures
    assert [text for text in failures if not any(re.search(each, text) for each in consequences)] == []


def test_an_origin_that_does_not_wait_for_the_end_of_a_lease_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def watch_lease(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
        state.timers.set(TimerKind.HELD_LEASE, claim.row.id, after(now, claim.row.lease_ns // 4))

    monkeypatch.setattr(placement, "watch_lease", watch_lease)
    monkeypatch.setattr(task_status, "watch_lease", watch_lease)
    assert _first_failure(_nothing)


def test_sums_that_count_a_machine_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def divide_twice(
        vectors: Iterable[Vector],
        children: Mapping[SystemId, Vector],
        *,
        keys: tuple[str, ...],
        memory: Memory | None = None,
    ) -> Division:
        return Division((*vectors, *children.values()), children, keys=keys, memory=memory)

    monkeypatch.setattr(outgoing, "Division", divide_twice)
    assert " reports " in _first_failure(_nothing)


def test_a_module_that_crashes_on_a_message_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_claim_end(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
        raise KeyError(claim_id)

    monkeypatch.setattr(claims, "on_claim_end", on_claim_end)
    assert _first_failure(_nothing) == "a module raised"


def test_a_module_that_takes_tasks_with_a_stolen_ticket_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def sabotage(federation: SimulatedFederation) -> None:
        federation.conditions.stolen_transfers = 100
        federation.conditions.failed_transfers = 50

    monkeypatch.setattr(byte_route, "_is_dialer", lambda *_, **__: True)
    assert "without a right" in _first_failure(sabotage)


def test_a_retry_that_runs_finished_tasks_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "has_failed", lambda row: row.state is not TaskState.EXECUTING)
    assert "is stored as executing again" in _first_failure(_nothing)
