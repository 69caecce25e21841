"""Short calls of Python functions by `messiahs.Executor`, beside as many no-op tasks on the same module."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import messiahs
from messiahs.client import Submission
from tests import system_python
from tests.benchmarks.federations import LONE, Measurable, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped

NO_OPS = "no-op tasks"
RATE = "calls or tasks a second"


def rows() -> tuple[Row, ...]:
    """Return the row about calls."""
    return (
        Row(
            name="calls",
            what="short calls by an executor, and no-op tasks in one submit, on one module",
            budgets=(Budget(figure=RATE, at_least=1 / 3, aim=1, is_more_better=True, times_peer=NO_OPS),),
            enter=_on_one_module,
        ),
    )


@contextmanager
def _on_one_module(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    if not system_python.IS_THERE:
        yield (Skipped(name=OURS, reason=system_python.WHY_NOT),)
        return
    with up(LONE) as measurable:
        yield (
            Contender(name=OURS, measure=lambda: _called(measurable, sizes.calls), processes=measurable.processes),
            Contender(name=NO_OPS, measure=lambda: _run(measurable, sizes.calls)),
        )


def _called(measurable: Measurable, calls: int) -> list[Reading]:
    """Measure from the start of the executor until it is shut down."""
    begun_at = time.monotonic()
    with messiahs.Executor(module=measurable.federation.module, state=measurable.federation.state) as executor:
        if list(executor.map(abs, range(calls))) != list(range(calls)):
            raise RuntimeError("not every call returned its value, so there is no rate")
    return [Reading(RATE, "/s", calls / (time.monotonic() - begun_at))]


def _run(measurable: Measurable, tasks: int) -> list[Reading]:
    begun_at = time.monotonic()
    with measurable.client() as client:
        client.wait(client.submit(Submission(argv=("true",), members=tasks)))
    return [Reading(RATE, "/s", tasks / (time.monotonic() - begun_at))]
