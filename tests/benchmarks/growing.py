"""A parent with many children whose vectors change: its cost, and how soon changes are known above it.

Simulated, in virtual time: `parent` has all the others as children, in circles of siblings as a topology makes them. It
is the root, or the one child of `above`. Only the time inside the parent's module counts; what its messages take to and
from their bytes stands beside.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.reading import load_topology
from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import Interval, Vector
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes

ABOVE, PARENT = SystemId("above"), SystemId("parent")
SETTLING_NS = 6 * SECOND
CHANGE_NS = 10 * SECOND
"""How often each machine changes."""
HERALD_NS = 1_700 * MILLISECOND
MEMORY, LOAD = "avail_mem", "load"
_MINUTE = 60
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Brood:
    """A number of children of one parent, and the targets of its figures."""

    children: int
    changed: str
    """The attributes of all machines that change every ten seconds."""
    at_least: float
    aim: float
    latency_ms: float

    @property
    def name(self) -> str:
        """The number of children, and what changes."""
        return f"{self.children:,} children, {self.changed}"

    def budgets(self) -> tuple[Budget, ...]:
        """Return the targets of a root and, except for the sum, of a parent that is below another."""
        latencies = (f"{self.name}: news at the root", f"{self.name}: news above the parent")
        return (
            Budget(figure=f"{self.name}: root, a virtual minute", at_least=self.at_least, aim=self.aim),
            Budget(figure=f"{self.name}: root, longest turn", at_least=100, aim=50),
            *(Budget(figure=figure, at_least=self.latency_ms, aim=self.latency_ms) for figure in latencies),
        )


BROODS = (
    Brood(children=200, changed=MEMORY, at_least=6, aim=2, latency_ms=100),
    Brood(children=500, changed=MEMORY, at_least=25, aim=6, latency_ms=2000),
    Brood(children=1000, changed=LOAD, at_least=15, aim=6, latency_ms=2000),
)


def rows() -> tuple[Row, ...]:
    """Return the row about a parent with many children."""
    return (
        Row(
            name="growth",
            what="processor time of a parent whose children change",
            budgets=tuple(budget for brood in BROODS for budget in brood.budgets()),
            enter=_entered,
        ),
    )


@contextmanager
def _entered(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    def measure() -> list[Reading]:
        return [reading for brood in BROODS for reading in measured(brood, sizes)]

    yield (Contender(name=OURS, measure=measure, processes={"the benchmark": os.getpid()}),)


def measured(brood: Brood, sizes: Sizes) -> list[Reading]:
    """Measure a root that has all the children, and a parent of as many that has a parent of its own."""
    return [*_measured(brood, sizes, is_root=True), *_measured(brood, sizes, is_root=False)]


def _measured(brood: Brood, sizes: Sizes, *, is_root: bool) -> Iterator[Reading]:
    """Let virtual seconds pass once all modules know each other, and scale the use to a minute."""
    federation = _federation(max(2, brood.children // sizes.brood_part), is_root=is_root)
    changes = _Changes(federation, brood.changed)
    federation.run(lambda: False, until=Instant(SETTLING_NS))
    timed = _Timed(federation.members[PARENT].module)
    federation.members[PARENT].module = timed
    coding = _timed_coding(federation)
    changes.begin()
    gc.collect()
    gc.freeze()
    federation.run(lambda: False, until=Instant(SETTLING_NS + int(sizes.brood_seconds * SECOND)))
    gc.unfreeze()
    scale = _MINUTE / sizes.brood_seconds
    delays_ms = [delay_ns / 1e6 for delay_ns in changes.delays_ns] or [0.0]
    name = f"{brood.name}: {'root' if is_root else 'parent'}"
    yield Reading(f"{name}, a virtual minute", "s", sum(timed.turns) * scale)
    yield Reading(f"{name}, longest turn", "ms", 1000 * max(timed.turns))
    yield Reading(f"{brood.name}: news {'at the root' if is_root else 'above the parent'}", "ms", max(delays_ms))
    yield Reading(f"{name}, from and to bytes beside", "s", sum(coding) * scale)
    yield Reading(f"{name}, vectors sent", "/s", timed.sent / sizes.brood_seconds)


class _Timed(SchedulingModule):
    """A module that records how long each of its events took, in seconds of processor time (mutable)."""

    def __init__(self, module: SchedulingModule) -> None:
        super().__init__(module.state)
        self.turns = [0.0]
        self.sent = 0

    def handle(self, event: Event, now: Instant) -> tuple[Action, ...]:
        """Handle an event."""
        return self._timed(lambda: super(_Timed, self).handle(event, now))

    def expire(self, now: Instant) -> tuple[Action, ...]:
        """Fire a timeout."""
        return self._timed(lambda: super(_Timed, self).expire(now))

    def _timed(self, turn: Callable[[], tuple[Action, ...]]) -> tuple[Action, ...]:
        # A garbage collection would visit the objects of all other modules in this process.
        gc.disable()
        begun_at = time.process_time()
        actions = turn()
        self.turns.append(time.process_time() - begun_at)
        gc.enable()
        self.sent += len(actions)
        return actions


def _timed_coding(federation: SimulatedFederation) -> list[float]:
    """Record the time to encode and decode the parent's vectors, including the far ends' halves."""
    took: list[float] = []
    send = federation.connections.send_vector

    def send_timed(sender: SystemId, to: SystemId, /, message: StatusVector) -> None:
        begun_at = time.process_time()
        send(sender, to, message)
        if PARENT in (sender, to):
            took.append(time.process_time() - begun_at)

    federation.connections.send_vector = send_timed  # type: ignore[method-assign]
    return took


@dataclass(slots=True)
class _Changes:
    """Lets every machine change every ten seconds, one after the other (mutable).

    The first of them is the herald: its memory is far beyond that of the others, so what a vector says of it can be
    seen in the vector's highest bucket, however it is compacted.
    """

    federation: SimulatedFederation
    changed: str
    delays_ns: list[int] = field(default_factory=list)
    _random: Random = field(default_factory=lambda: Random(5))
    _octave: int = 50

    def begin(self) -> None:
        """Spread the first changes over ten seconds."""
        herald, *leaves = [name for name in self.federation.members if name not in (ABOVE, PARENT)]
        self._herald_news(herald)
        for place, leaf in enumerate(leaves):
            self.federation.later(place * CHANGE_NS // len(leaves), partial(self._change, leaf))

    def _change(self, leaf: SystemId) -> None:
        self._measure(leaf, {self.changed: _drawn(self._random)[self.changed]})
        self.federation.later(CHANGE_NS, partial(self._change, leaf))

    def _herald_news(self, herald: SystemId) -> None:
        self._octave = 50 + (self._octave + 1) % 8
        self._measure(herald, {"avail_mem": 1 << self._octave})
        self._look(herald, self.federation.now, self._octave)
        self.federation.later(HERALD_NS, partial(self._herald_news, herald))

    def _look(self, herald: SystemId, since: Instant, octave: int) -> None:
        """Check every millisecond whether it is known above; a change overtaken by the next one counts as late."""
        place, child = (ABOVE, PARENT) if ABOVE in self.federation.members else (PARENT, herald)
        view = self.federation.members[place].module.state.updates.views.get((child, VectorKind.FOR_PARENTS))
        highest = max(_highest_memory(view.message.vector), default=0) if view is not None else 0
        if highest == bucket_of(1 << octave) or octave != self._octave:
            self.delays_ns.append(self.federation.now - since)
        else:
            self.federation.later(MILLISECOND, partial(self._look, herald, since, octave))

    def _measure(self, leaf: SystemId, change: dict[str, Value]) -> None:
        host = self.federation.members[leaf]
        assert host.system.machine is not None, "all leaves have one"
        said = host.system.machine.description() | change
        host.system = replace(host.system, machine=SDV(sorted_pairs(said)))
        host.measure()


def _highest_memory(vector: Vector) -> Iterator[int]:
    for each in vector.classes:
        said = dict(each.attributes)["avail_mem"]
        assert isinstance(said, Interval), "memory is a number"
        yield said.high


def _federation(children: int, *, is_root: bool) -> SimulatedFederation:
    above = [f"  {PARENT}: {{}}"] if is_root else [f"  {ABOVE}: {{}}", f"  {PARENT}: {{parent: {ABOVE}}}"]
    lines = [f"  leaf-{number:04}: {{parent: {PARENT}, machine: {{isolation: process}}}}" for number in range(children)]
    text = "\n".join(("version: 1", "federation: growth", "systems:", *above, *lines))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "growth.yaml"
        path.write_text(text + "\n")
        topology = load_topology(path)
    neighborhoods, random = Neighborhoods(topology), Random(3)
    policy = OpenPolicy(timeouts=Timeouts(update_period_ns=topology.update_period_ns))
    systems = {
        system.name: SimulatedSystem(
            name=system.name,
            neighbors=neighborhoods.of(system.name),
            machine=SDV(sorted_pairs(_drawn(random))) if system.machine is not None else None,
            policy=policy,
        )
        for system in topology.systems
    }
    return SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND))


def _drawn(random: Random) -> dict[str, Value]:
    """Return a machine; hardly two are alike in all keys."""
    slots = 2 ** random.randint(0, 7)
    return {
        "speed": random.randint(100, 5000),
        "nproc": slots,
        "slots": slots,
        "total_mem": 1 << 60,
        "avail_mem": random.randint(1, 512) * _GIB,
        "total_disk": 1000 * _GIB,
        "avail_disk": random.randint(0, 1000) * _GIB,
        "load": random.randint(0, 10_000),
        "arch": random.choice(("x86_64", "aarch64", "riscv64")),
        "os": random.choice(("Linux", "FreeBSD")),
    }
