"""A neighbor that sends all it can, on a core of its own: how long users of the module and other neighbors wait.

The other core is the module's: its daemon runs there. Its machine has both, with the starter and whatever that starts:
a flooder that has got a place runs tasks in it, and a machine lends its slots beside those of its own users. The other
neighbor really is another host; here its daemon shares both cores with all of this.

The 99th percentile is the smallest time that 99 of 100 do not exceed. The longest is shown as well: the first streams
of a flood of thousands delay one task of another neighbor for long.
"""

import math
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import psutil

from messiahs.client import ModuleClient, Submission
from messiahs.errors import ClientError
from tests.benchmarks.federations import ORIGIN, Measurable, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.processes import memory_of
from tests.hostile.flooder import KINDS
from tests.hostile.flooding_process import flooding
from tests.waiting import let_pass

EVIL, FRIEND = "evil", "friend"
VICTIMS = RUN, ASK, TASK_OF_FRIEND = "run", "API", "task of another neighbor"
CALM = "no flood"
_BESIDE: Final = "\n  ".join(f"{name}: {{parent: {ORIGIN}}}" for name in (EVIL, FRIEND))
_SYSTEMS: Final = f"{ORIGIN}: {{machine: {{isolation: process, slots: 16}}}}\n  {_BESIDE}"
_PAUSE_SECONDS: Final = 0.02
_LONGEST_SECONDS: Final = 20.0
_TIMES: Final = 5
"""How many times as long as without a flood is enough, from 100 ms on, and below 250 ms."""


def rows() -> tuple[Row, ...]:
    """Return the row about floods."""
    budgets = (
        Budget(figure=_figure(what, kind, 99), at_least=250, aim=100, beside=(_TIMES, _figure(what, CALM, 99)))
        for kind in KINDS
        for what in VICTIMS
    )
    return (
        Row(
            name="flood",
            what="users, and tasks of another neighbor, while a neighbor sends all it can",
            budgets=tuple(budgets),
            enter=_entered,
        ),
    )


def _figure(what: str, when: str, percent: int) -> str:
    return f"{when}: {what}, p{percent}"


@contextmanager
def _entered(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(_SYSTEMS) as measurable:
        # The flooder takes the place of this daemon; one that has ended would be started again.
        played = measurable.federation.pid(EVIL, "daemon")
        os.kill(played, signal.SIGSTOP)
        measure = partial(_measured, measurable, sizes)
        try:
            yield (Contender(name=OURS, measure=measure, processes=measurable.processes),)
        finally:
            os.kill(played, signal.SIGCONT)


def _measured(measurable: Measurable, sizes: Sizes) -> list[Reading]:
    """Measure without a flood, and with one of each kind; the daemon and the flooder have a core each."""
    daemon = measurable.processes[f"daemon of {ORIGIN}"]
    first, *_, last = sorted(os.sched_getaffinity(0))
    _pin(daemon, last)
    readings = _victims(measurable, sizes, CALM)
    for kind in KINDS:
        with flooding(measurable.federation.folder(EVIL) / "settings.json", kind) as flooder:
            _pin(flooder.pid, first)
            let_pass(sizes.flood_fill_seconds)
            readings += _victims(measurable, sizes, kind)
            readings.append(Reading(f"{kind}: memory of the module", "MiB", memory_of(daemon).resident_bytes / 2**20))
        let_pass(sizes.flood_fill_seconds)
    return readings


def _pin(pid: int, core: int) -> None:
    for thread in psutil.Process(pid).threads():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread.id, {core})


def _victims(measurable: Measurable, sizes: Sizes, when: str) -> list[Reading]:
    """Take turns, so that every flood meets all of them, for some time at most."""
    took: dict[str, list[float]] = {RUN: [], ASK: [], TASK_OF_FRIEND: []}
    folder = measurable.federation.folder(FRIEND)
    with measurable.client() as client, ModuleClient(folder.with_suffix(".sock"), patience=60.0) as friend:
        works: dict[str, Callable[[], object]] = {
            RUN: partial(_run, client),
            ASK: client.module,
            TASK_OF_FRIEND: partial(_run, friend),
        }
        for work in works.values():
            work()
        until = time.monotonic() + _LONGEST_SECONDS
        while not took[RUN] or (len(took[RUN]) < sizes.flood_tasks and time.monotonic() < until):
            for what, work in works.items():
                took[what].append(_timed(work))
                let_pass(_PAUSE_SECONDS)
    return [
        reading
        for what, times in took.items()
        for reading in (
            Reading(_figure(what, when, 50), "ms", statistics.median(times)),
            Reading(_figure(what, when, 99), "ms", _percentile(times, 99)),
            Reading(f"{when}: {what}, longest", "ms", max(times)),
            Reading(f"{when}: {what}, number", "", len(times)),
        )
    ]


def _percentile(times: Sequence[float], percent: int) -> float:
    return sorted(times)[math.ceil(percent * len(times) / 100) - 1]


def _timed(work: Callable[[], object]) -> float:
    begun_at = time.monotonic()
    with suppress(ClientError):
        work()
    return 1000 * (time.monotonic() - begun_at)


def _run(client: ModuleClient) -> None:
    """Run a task as the command does: its output is followed, and its end awaited."""
    task = client.submit(Submission(argv=("echo", "done")))
    shown = b"".join(client.logs(task, follow=True))
    document = client.wait(task)
    if document["exit_code"] != 0 or shown != b"done\n":
        raise RuntimeError(f"the task did not finish: {document}")
