"""What the modules of both sites recorded: whether the core repeats it, and how soon views were right again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from messiahs.core import queries
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import MINUTE, Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.state.module import ModuleState
from messiahs.trace.format.segments import Segment
from messiahs.trace.replay.replay import replay
from messiahs.trace.replay.step import RecordedPorts, do_step
from messiahs.trace.show.reader import read_segments, segment_files
from tests.live.sites import Sites

_SIZE_BYTES = 64 << 20


@dataclass(slots=True, kw_only=True)
class Recorded:
    """The segments of each module, and when they began; none until the recording has ended (mutable).

    There are `machines` in all. Instants are of the system's clock, whatever those of the modules are.
    """

    machines: int
    began: dict[str, int]
    segments: dict[str, list[Segment]] = field(default_factory=dict)

    def check(self) -> None:
        """Check that the core repeats every action."""
        for module, segments in self.segments.items():
            done = replay(segments)
            assert done.events > 0, module
            assert not done.differences, done.differences[:3]

    def heard_at(self, module: str, neighbor: str) -> int:
        """Return when a module last began to have a view of a neighbor."""
        heard_at, has_view = 0, False
        for at, _, state in self._steps(module):
            had_view, has_view = has_view, any(system == neighbor for system, _ in state.updates.views)
            heard_at = at if has_view and not had_view else heard_at
        return heard_at

    def periods_until_right(self, module: str, since: int) -> int:
        """Return in which update period of a module after an instant it knew of all machines for good; 0: at once."""
        periods, needed = 0, 0
        for at, has_period_ended, state in self._steps(module):
            if at >= since:
                periods += has_period_ended
                machines = sum(each.count for each in queries.own_sums(state).down.classes)
                needed = needed if machines == self.machines else periods + 1
        return needed

    def _steps(self, module: str) -> Iterator[tuple[int, bool, ModuleState]]:
        """Yield for each step when it was, whether an update period ended, and the state afterwards."""
        ahead_ns: int | None = None
        for segment in self.segments[module]:
            ports = RecordedPorts()
            state = segment.state_with(policy=segment.head.policy.policy(), randomness=ports, calendar=ports.calendar)
            stepped = SchedulingModule(state)
            for record in segment.records():
                if ahead_ns is None:
                    # Wrong clocks are wrong by whole minutes; the first step is within a second of the beginning.
                    ahead_ns = round((record.at - self.began[module]) / MINUTE) * MINUTE
                has_period_ended = record.subject is None and _is_period_over(state, record.at)
                ports.left = iter(record.drawn)
                do_step(stepped, record.subject, record.at)
                yield record.at - ahead_ns, has_period_ended, state


def _is_period_over(state: ModuleState, at: Instant) -> bool:
    return any(kind is TimerKind.OUTPUT and due <= at for kind, _, due in state.timers.waiting())


@contextmanager
def recorded(sites: Sites) -> Iterator[Recorded]:
    """Record every module for the block."""
    before = {module: set(_files(sites, module)) for module in sites.plan.modules}
    made = Recorded(machines=len(sites.plan.machines), began={module: time.time_ns() for module in sites.plan.modules})
    _record(sites, _SIZE_BYTES)
    yield made
    _record(sites, None)
    for module in sites.plan.modules:
        new = [file for file in segment_files(_files(sites, module)) if file not in before[module]]
        made.segments[module] = list(read_segments(new))


def _record(sites: Sites, size_bytes: int | None) -> None:
    for module in sites.plan.modules:
        with sites.client(module) as client:
            client.record(size_bytes)


def _files(sites: Sites, module: str) -> list[Path]:
    return sorted((sites.at(module).folder(module) / "trace").glob("*.trace"))
