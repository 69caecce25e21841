"""The present conditions of the simulated world: delays, and probabilities of failures."""

from dataclasses import dataclass, field
from random import Random

from messiahs.core.model.ids import SystemId, TaskId
from messiahs.sim.world.links import Links

_PERCENT = 100


def _certain() -> Random:
    return Random(0)  # noqa: S311 - a simulation is repeatable


@dataclass(slots=True, kw_only=True)
class Conditions:
    """Mutable, so that faults can come and go; the defaults have no failures. Shares are in per cent."""

    random: Random = field(default_factory=_certain)
    links: Links = field(default_factory=Links)
    spread_ns: int = 0
    """Mean of the exponentially distributed addition to the delay of a hop."""
    commit_ns: int = 0
    """Longest duration of a commit."""
    lost_vectors: int = 0
    failed_transfers: int = 0
    """Streams of tasks that break; their tasks may or may not have arrived."""
    repeated_transfers: int = 0
    """Tasks that arrive a second time, up to a minute late."""
    stolen_transfers: int = 0
    """Tasks of which a copy arrives from a system that has no part in their claim."""
    failed_fetches: int = 0
    inputs_ns: int = 0
    """Longest time that the inputs of tasks take to reach their executor."""
    outputs_ns: int = 0
    """Longest time that the outputs of a task take to reach their origin."""
    failed_inputs: int = 0
    """Inputs that do not reach their executor: it refuses them, or the stream breaks."""
    failed_staging: int = 0
    """Attempts whose inputs cannot be put in place."""
    unlimited: int = 0
    """Attempts that their machine does not end at their time limit."""
    repeated_control: int = 0
    """Control messages that arrive twice, which real connections prevent: a repetition must be harmless."""
    lingering_ns: int = 0
    """Longest time that a task takes to end when it is asked to."""
    memory: dict[TaskId, int] = field(default_factory=dict)
    """Memory used by tasks, in bytes, where it differs from the default."""
    clock_step_ns: int = 0
    """Largest step of a machine's clock, forward or back, while the machine is off."""
    cuts: dict[tuple[SystemId, SystemId], int] = field(default_factory=dict)
    """Blocked directions, with the number of faults that block each."""
    walled: dict[SystemId, int] = field(default_factory=dict)
    """Systems behind a firewall, which admits streams of neighbors only, with the number of faults for each."""

    def hop_ns(self, one: SystemId, other: SystemId) -> int:
        """Return the delay of one message from one system to another."""
        return self.links.delay_ns(one, other) + (
            int(self.random.expovariate(1) * self.spread_ns) if self.spread_ns else 0
        )

    def up_to(self, longest_ns: int) -> int:
        """Return a random duration."""
        return self.random.randrange(longest_ns) if longest_ns else 0

    def happens(self, share: int) -> bool:
        """Draw whether an event with a probability of `share` per cent happens."""
        return share > 0 and self.random.randrange(_PERCENT) < share

    def clock_step(self) -> int:
        """Return a random step, forward or back, of the clock of a machine that was off."""
        return self.up_to(2 * self.clock_step_ns) - self.clock_step_ns if self.happens(50) else 0

    def is_cut(self, sender: SystemId, receiver: SystemId) -> bool:
        """Return whether messages from one system to another are blocked."""
        return (sender, receiver) in self.cuts

    def is_walled(self, one: SystemId, other: SystemId) -> bool:
        """Return whether a firewall stands between two systems that have no link."""
        return one in self.walled or other in self.walled

    def wall(self, system: SystemId) -> None:
        """Put a system behind a firewall."""
        self.walled[system] = self.walled.get(system, 0) + 1

    def unwall(self, system: SystemId) -> None:
        """Remove one firewall of a system."""
        self.walled[system] -= 1
        if not self.walled[system]:
            del self.walled[system]

    def cut(self, pairs: tuple[tuple[SystemId, SystemId], ...]) -> None:
        """Block messages in some directions."""
        for pair in pairs:
            self.cuts[pair] = self.cuts.get(pair, 0) + 1

    def mend(self, pairs: tuple[tuple[SystemId, SystemId], ...]) -> tuple[tuple[SystemId, SystemId], ...]:
        """Remove one cut of each direction; return the directions that are no longer blocked."""
        mended = []
        for pair in pairs:
            self.cuts[pair] -= 1
            if not self.cuts[pair]:
                del self.cuts[pair]
                mended.append(pair)
        return tuple(mended)
