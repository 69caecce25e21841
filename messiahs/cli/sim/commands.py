"""`messiahs sim …`: the same modules in virtual time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from messiahs.cli.options import JSON
from messiahs.cli.output import print_document, print_text
from messiahs.core.model.instants import SECOND

if TYPE_CHECKING:
    from messiahs.sim.load.scenario import Outcome
    from messiahs.sim.swarm import Run


class _Load(TypedDict):
    """What is submitted, and where."""

    tasks: int
    at: str
    requirement: str
    file: Path | None


@click.group()
def sim() -> None:
    """Simulate a federation in virtual time."""


@sim.command()
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tasks", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Number of tasks.")
@click.option("--seed", type=int, default=0, show_default=True, help="Runs with the same seed are identical.")
@click.option("--at", default="", help="System at which the tasks are submitted (default: the first one).")
@click.option("--require", "requirement", default="", help="A predicate that a task's machine must satisfy.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run the tasks of FILE, as `submit --file` takes it, in their order; --tasks and --require have no effect.",
)
@JSON
def run(scenario: Path, *, seed: int, as_json: bool, **load: Unpack[_Load]) -> int:
    """Run many tasks in the federation of SCENARIO, a topology file; exit with 1 unless all of them finish."""
    from messiahs.config.topology.reading import load_topology
    from messiahs.sim.load.scenario import Workload, simulate

    tasks, file = load["tasks"], load["file"]
    workload = Workload(tasks=tasks, at=load["at"], requirement=load["requirement"])
    if file is not None:
        from messiahs.config.workflow.reading import load_workflow
        from messiahs.sim.load.workflows import tasks_in

        workflow = load_workflow(file)
        tasks = tasks_in(workflow)
        workload = Workload(tasks=tasks, at=load["at"], workflow=workflow)
    begun_at = time.monotonic()
    with _shown_progress(tasks) as on_progress:
        outcome = simulate(load_topology(scenario), workload, seed=seed, on_progress=on_progress)
    took_seconds = time.monotonic() - begun_at
    if as_json:
        print_document(
            {
                "tasks": outcome.tasks,
                "finished": outcome.finished,
                "makespan_seconds": outcome.makespan_ns / SECOND,
                "placements": dict(outcome.placements),
                "messages": outcome.messages,
                "messages_per_task": outcome.messages_per_task,
                "events": outcome.events,
                "digest": outcome.digest,
            }
        )
    else:
        _print(outcome, took_seconds)
    return 0 if outcome.finished == outcome.tasks else 1


@sim.command()
@click.option("--runs", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="Number of seeds.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first seed.")
@JSON
def swarm(*, runs: int, seed: int, as_json: bool) -> int:
    """Run random federations with faults that heal; exit with 1 if an invariant is violated.

    Runs with the same seed are identical. A failure is printed with the command that replays it.
    """
    from messiahs.cli.sim.swarm import outcomes, print_run, print_summary, swarm_document

    done: list[Run] = []
    with outcomes(range(seed, seed + runs)) as over:
        for number, run in enumerate(over, start=1):
            done.append(run)
            if not as_json:
                print_run(run, number=number, of=runs)
    if as_json:
        print_document(swarm_document(done))
    else:
        print_summary(done)
    return 1 if any(run.failure is not None for run in done) else 0


def _print(outcome: "Outcome", took_seconds: float) -> None:
    print_text(f"{outcome.finished} of {outcome.tasks} tasks finished in {outcome.makespan_ns / SECOND:.3f} virtual s")
    for machine, tasks in outcome.placements:
        print_text(f"  {machine}: {tasks}")
    print_text(f"{outcome.messages} messages, {outcome.messages_per_task:.2f} a task")
    print_text(f"digest {outcome.digest}")
    print_text(f"simulated in {took_seconds:.2f} s, {outcome.events / took_seconds:,.0f} events/s", err=True)


@contextmanager
def _shown_progress(tasks: int) -> Iterator[Callable[[int], None]]:
    """Yield a callback that draws progress on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _ended: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("simulating", total=tasks)
        yield lambda ended: progress.update(bar, completed=ended)
