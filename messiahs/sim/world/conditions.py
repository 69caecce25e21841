"""How well the simulated world works at the moment: delays, and how often something goes wrong."""

from dataclasses import dataclass, field
from random import Random

from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import MILLISECOND

HOP_DELAY_NS = MILLISECOND
_PERCENT = 100


def _certain() -> Random:
    return Random(0)  # noqa: S311 - a simulation wants to be repeated


@dataclass(slots=True, kw_only=True)
class Conditions:
    """Mutable, so that faults can come and go; as it is made, nothing ever goes wrong. Shares are per cent."""

    random: Random = field(default_factory=_certain)
    spread_ns: int = 0
    """The mean of what is added to the delay of a hop (exponentially distributed)."""
    commit_ns: int = 0
    """How long a commit takes at most."""
    lost_vectors: int = 0
    failed_transfers: int = 0
    """Streams of tasks that break; what was on them may or may not have arrived."""
    repeated_transfers: int = 0
    """Tasks that arrive a second time, up to a minute late."""
    failed_fetches: int = 0
    inputs_ns: int = 0
    """How long the inputs of tasks take at most to reach their executor."""
    failed_inputs: int = 0
    """Inputs that do not reach their executor: it refuses them, or the stream breaks."""
    failed_staging: int = 0
    """Attempts whose inputs cannot be put in place."""
    unlimited: int = 0
    """Attempts that their machine does not end at their time limit."""
    repeated_control: int = 0
    """Control messages that arrive twice, which a connection does not do: a repetition must do no harm."""
    lingering_ns: int = 0
    """How long a task takes at most to end when it is asked to."""
    memory: dict[TaskId, int] = field(default_factory=dict)
    """What memory tasks use, in bytes, beside the little that others do."""
    clock_step_ns: int = 0
    """How much the clock of a machine may be set forward or back while that is off."""
    cuts: dict[tuple[SystemId, SystemId], int] = field(default_factory=dict)
    """Directions in which nothing passes, and how many faults say so."""

    def hop_ns(self) -> int:
        """Give the delay of one message."""
        return HOP_DELAY_NS + (int(self.random.expovariate(1) * self.spread_ns) if self.spread_ns else 0)

    def up_to(self, longest_ns: int) -> int:
        """Give a random duration."""
        return self.random.randrange(longest_ns) if longest_ns else 0

    def happens(self, share: int) -> bool:
        """Say whether something happens that does so in so many per cent of all cases."""
        return share > 0 and self.random.randrange(_PERCENT) < share

    def clock_step(self) -> int:
        """Give how much a clock was set forward, or back, while its machine was off."""
        return self.up_to(2 * self.clock_step_ns) - self.clock_step_ns if self.happens(50) else 0

    def is_cut(self, sender: SystemId, receiver: SystemId) -> bool:
        """Say whether nothing passes from one system to another."""
        return (sender, receiver) in self.cuts

    def cut(self, pairs: tuple[tuple[SystemId, SystemId], ...]) -> None:
        """Let nothing pass in some directions."""
        for pair in pairs:
            self.cuts[pair] = self.cuts.get(pair, 0) + 1

    def mend(self, pairs: tuple[tuple[SystemId, SystemId], ...]) -> tuple[tuple[SystemId, SystemId], ...]:
        """Take back one cut of each direction; give those in which something passes again."""
        mended = []
        for pair in pairs:
            self.cuts[pair] -= 1
            if not self.cuts[pair]:
                del self.cuts[pair]
                mended.append(pair)
        return tuple(mended)
