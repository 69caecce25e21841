"""No-op tasks: how many a second are submitted, run as real processes, and recorded so that a crash loses none."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from types import MappingProxyType

from messiahs.client import Submission
from messiahs.core.model.trace_context import TRACEPARENT
from tests.benchmarks.federations import BORDER, CHAIN, LONE, SANDBOXED, Measurable, cpu_seconds, lone_with, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes, Skipped
from tests.benchmarks.task_peers import RATE, peers
from tests.collectors import collecting, silent_collector
from tests.ports import free_port

OPEN_HOP = "an open hop"
WITHOUT = "without sandboxes"
COMMAND_RATE = "tasks a second, submit and wait as commands"
_WARMING_TASKS = 50
_TRACE = MappingProxyType({TRACEPARENT: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
"""A sampled trace, in which each task has a span."""


def rows() -> tuple[Row, ...]:
    """Return the rows about throughput."""
    return (
        Row(
            name="tasks",
            what="no-op tasks in one submit on one module",
            budgets=(Budget(figure=RATE, at_least=1200, aim=2000, is_more_better=True),),
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
            budgets=(Budget(figure=RATE, at_least=1000, aim=1700, is_more_better=True),),
            enter=_two_hops_away,
        ),
        Row(
            name="tasks-border",
            what="no-op tasks in one submit, over the border of a site",
            budgets=(Budget(figure=RATE, at_least=0.8, aim=0.95, is_more_better=True, times_peer=OPEN_HOP),),
            enter=_over_a_border,
        ),
        Row(
            name="tasks-watched",
            what="traced no-op tasks in one submit on one module, with metrics, and with spans to a collector",
            budgets=(),
            enter=_while_watched,
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


@contextmanager
def _while_watched(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        services = {
            OURS: "",
            "with metrics": f'metrics: {{listen: "127.0.0.1:{free_port()}"}}',
            "with spans": f'otlp: {{endpoint: "{collector.endpoint}"}}',
            "with spans that nobody takes": f'otlp: {{endpoint: "{stack.enter_context(silent_collector())}"}}',
        }
        yield tuple(
            _ours(stack.enter_context(up(lone_with(service))), sizes.tasks, name=name, env=_TRACE)
            for name, service in services.items()
        )


def _ours(
    measurable: Measurable, tasks: int, *, name: str = OURS, env: Mapping[str, str] = MappingProxyType({})
) -> Contender:
    _by_api(measurable, min(_WARMING_TASKS, tasks), env)

    def measure() -> list[Reading]:
        before = cpu_seconds(measurable.processes)
        rate = _by_api(measurable, tasks, env)
        after = cpu_seconds(measurable.processes)
        used = {name: 1000 * (after[name] - before[name]) / tasks for name in after}
        return [
            Reading(RATE, "/s", rate),
            Reading(COMMAND_RATE, "/s", _by_commands(measurable, tasks, env)),
            Reading("processor time of 1,000 tasks: all", "s", sum(used.values())),
            *(Reading(f"processor time of 1,000 tasks: {name}", "s", seconds) for name, seconds in used.items()),
        ]

    return Contender(name=name, measure=measure, processes=measurable.processes)


def _by_api(measurable: Measurable, tasks: int, env: Mapping[str, str], /) -> float:
    """Return the rate from when the array was taken in to when its last member had ended, as the module recorded it."""
    with measurable.client() as client:
        document = client.wait(client.submit(Submission(argv=("true",), members=tasks, env=env)))
    if document["exit_codes"] != {"0": tasks}:
        raise RuntimeError(f"not every task finished, so there is no rate: {document}")
    ended, submitted = (datetime.fromisoformat(document[name]) for name in ("ended_at", "submitted_at"))
    return tasks / (ended - submitted).total_seconds()


def _by_commands(measurable: Measurable, tasks: int, env: Mapping[str, str], /) -> float:
    command = [sys.executable, "-m", "messiahs.cli.main"]
    environment = {**measurable.federation.environment, **env}
    begun_at = time.monotonic()
    submitted = subprocess.run(
        [*command, "submit", "--quiet", "--array", f"1-{tasks}", "--", "true"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    subprocess.run([*command, "wait", submitted.stdout.strip()], env=environment, check=True, capture_output=True)
    return tasks / (time.monotonic() - begun_at)
