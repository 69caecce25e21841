"""An origin that was away for long gets every result that waits for it, also if they exceed what one report lists."""

from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import AnswerTo, LinkDown, Measured, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.model.ids import AttemptId, ClientKey
from messiahs.core.model.instants import HOUR, MILLISECOND, MINUTE
from messiahs.core.model.output_names import DECLARED_PREFIX
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Usage
from tests.unit.core.pair import LEFT, RIGHT, RUN_NS, Pair
from tests.unit.core.rig import sdv, tdv

COUNT = 40
FILES = tuple(
    Output(name=f"{DECLARED_PREFIX}work/{number:0>250}", size_bytes=0, is_executable=False) for number in range(200)
)
"""Some 55 KiB in a report."""


class ListingPair(Pair):
    """A pair whose tasks leave many files (mutable), and every second one a log that is fetched."""

    def _start_attempt(self, attempt: AttemptId) -> None:
        if attempt in self.backend:
            return
        self.backend[attempt] = None
        self.started.append(attempt)
        self.post(RIGHT, AttemptStarted(attempt=attempt))
        outputs = (Output(name="stdout", size_bytes=3), *FILES) if len(self.started) % 2 else FILES
        ended = AttemptEnded(attempt=attempt, exit_code=0, ran_ns=RUN_NS, usage=Usage(cpu_ns=RUN_NS), outputs=outputs)
        self._later(RUN_NS, lambda: self._end_attempt(ended))

    def leave(self, *, for_ns: int) -> None:
        """Kill the origin, and let it begin again after this time."""
        host = self.hosts[LEFT]
        host.is_up = False
        host.life += 1
        self.hosts[RIGHT].life += 1
        self._later(0, lambda: self.post(RIGHT, LinkDown(neighbor=LEFT)))
        self._later(for_ns, lambda: self._restart(LEFT))


def test_an_origin_that_comes_back_after_its_leases_gets_all_results_and_runs_nothing_twice() -> None:
    pair = ListingPair()
    pair.start()
    pair.post(RIGHT, Measured(sdv=sdv(slots=COUNT)))
    pair.run(lambda: False, for_ns=MINUTE)
    command = Command(argv=("true",), outputs=("work/*",))
    pair.post(
        LEFT,
        Submitted(answer_to=AnswerTo(1), tdv=tdv(), requirement="", command=command, members=COUNT, key=ClientKey("k")),
    )
    pair.run(lambda: len(pair.started) == COUNT, for_ns=MINUTE)
    assert len(pair.started) == COUNT
    pair.leave(for_ns=HOUR)
    pair.run(lambda: pair.hosts[LEFT].is_up, for_ns=2 * HOUR)
    (kept,) = pair.hosts[RIGHT].module.state.executor.kept_bytes.values()
    assert kept > COUNT * 50_000
    pair.run(lambda: len(pair.ended()) == COUNT, for_ns=100 * MILLISECOND)
    assert {row.state for row in pair.ended()} == {TaskState.FINISHED}
    assert len(pair.ended()) == len(pair.started) == COUNT
    pair.run(lambda: False, for_ns=MINUTE)
    assert pair.hosts[RIGHT].module.state.executor.kept_bytes == {}
    assert not pair.backend
