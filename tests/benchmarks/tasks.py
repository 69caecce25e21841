"""No-op tasks: how many a second are submitted, run as real processes, and recorded so that a crash loses none."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from messiahs.client import Submission
from tests.benchmarks.federations import BORDER, CHAIN, LONE, SANDBOXED, Measurable, cpu_seconds, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.task_peers import RATE, peers

OPEN_HOP = "an open hop"
WITHOUT = "without sandboxes"
COMMAND_RATE = "tasks a second, submit and wait as commands"
_WARMING_TASKS = 50


def rows() -> tuple[Row, ...]:
    """Return the rows about throughput."""
    return (
        Row(
            name="tasks",
            what="no-op tasks in one submit on one module",
            budgets=(Budget(figure=RATE, at_least=700, aim=1200, is_more_better=True),),
            enter=_on_one_module,
        ),
        Row(
            name="tasks-sandbox",
            what="no-op tasks in one submit on one module, each in a sandbox",
            budgets=(Budget(figure=RATE, at_least=600, aim=1000, is_more_better=True),),
            enter=_in_sandboxes,
        ),
        Row(
            name="tasks-afar",
            what="no-op tasks in one submit, run two hops away",
            budgets=(Budget(figure=RATE, at_least=350, aim=800, is_more_better=True),),
            enter=_two_hops_away,
        ),
        Row(
            name="tasks-border",
            what="no-op tasks in one submit, over the border of a site",
            budgets=(Budget(figure=RATE, at_least=0.8, aim=0.95, is_more_better=True, times_peer=OPEN_HOP),),
            enter=_over_a_border,
        ),
    )


@contextmanager
def _on_one_module(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(LONE) as measurable:
        yield (_ours(measurable, sizes.tasks), *peers(sizes.tasks))


@contextmanager
def _in_sandboxes(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    if os.geteuid() != 0:
        yield (Skipped(name=OURS, reason="only root can set up sandboxes with accounts of their own"),)
        return
    with up(SANDBOXED) as contained, up(LONE) as plain:
        yield (_ours(contained, sizes.tasks), _ours(plain, sizes.tasks, name=WITHOUT))


@contextmanager
def _two_hops_away(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(CHAIN) as measurable:
        yield (_ours(measurable, sizes.tasks),)


@contextmanager
def _over_a_border(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(BORDER) as closed, up(CHAIN) as opened:
        yield (_ours(closed, sizes.tasks), _ours(opened, sizes.tasks, name=OPEN_HOP))


def _ours(measurable: Measurable, tasks: int, *, name: str = OURS) -> Contender:
    _by_api(measurable, min(_WARMING_TASKS, tasks))

    def measure() -> list[Reading]:
        before = cpu_seconds(measurable.processes)
        rate = _by_api(measurable, tasks)
        after = cpu_seconds(measurable.processes)
        used = {name: 1000 * (after[name] - before[name]) / tasks for name in after}
        return [
            Reading(RATE, "/s", rate),
            Reading(COMMAND_RATE, "/s", _by_commands(measurable, tasks)),
            Reading("processor time of 1,000 tasks: all", "s", sum(used.values())),
            *(Reading(f"processor time of 1,000 tasks: {name}", "s", seconds) for name, seconds in used.items()),
        ]

    return Contender(name=name, measure=measure, processes=measurable.processes)


def _by_api(measurable: Measurable, tasks: int) -> float:
    """Return the rate from when the array was taken in to when its last member had ended, as the module recorded it."""
    with measurable.client() as client:
        document = client.wait(client.submit(Submission(argv=("true",), members=tasks)))
    if document["exit_codes"] != {"0": tasks}:
        raise RuntimeError(f"not every task finished, so there is no rate: {document}")
    ended, submitted = (datetime.fromisoformat(document[name]) for name in ("ended_at", "submitted_at"))
    return tasks / (ended - submitted).total_seconds()


def _by_commands(measurable: Measurable, tasks: int) -> float:
    command = [sys.executable, "-m", "messiahs.cli.main"]
    environment = measurable.federation.environment
    begun_at = time.monotonic()
    submitted = subprocess.run(
        [*command, "submit", "--quiet", "--array", f"1-{tasks}", "--", "true"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    subprocess.run([*command, "wait", submitted.stdout.strip()], env=environment, check=True, capture_output=True)
    return tasks / (time.monotonic() - begun_at)
