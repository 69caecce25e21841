"""All numbers in one table: `python -m tests.benchmarks`, in the folder of a checkout.

Nothing is asserted. `--row` picks rows, `--sizes quick` measures less, `--profile` says where the time goes.
"""

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from messiahs.cli.federation.temporary import interruptible
from tests.benchmarks import (
    asking,
    calling,
    crossing,
    equipping,
    flooding,
    growing,
    idling,
    judging,
    latency,
    moving,
    notifying,
    passing,
    piping,
    refusing,
    remembering,
    simulating,
    starting,
    tasks,
    vectors,
    viewing,
)
from tests.benchmarks.measuring import QUICK, TINY, WHOLE, Contender, Measured, Row, measure
from tests.benchmarks.profiling import profiled, py_spy
from tests.benchmarks.showing import document_of, skipped_lines, table_of
from tests.benchmarks.surroundings import look_around

_PAGE_COLUMNS = 180
SIZES = {"whole": WHOLE, "quick": QUICK, "tiny": TINY}

Profiled = Callable[[Contender], AbstractContextManager[None]]


def all_rows() -> tuple[Row, ...]:
    """Return every row, in the order of the table."""
    first = (tasks, calling, latency, equipping, judging, viewing, remembering, refusing, starting, asking)
    modules = (*first, idling, vectors, growing, moving, piping, passing, crossing, notifying, flooding, simulating)
    return tuple(row for module in modules for row in module.rows())


@click.command()
@click.option("--row", "names", multiple=True, type=click.Choice([row.name for row in all_rows()]), help="Only this.")
@click.option("--repeat", "repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Turns of each.")
@click.option("--sizes", type=click.Choice(list(SIZES)), default="whole", show_default=True, help="How much of it.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every repeat to this file.")
@click.option("--profile", "profiles", type=click.Path(path_type=Path), help="Only ours, with stacks in this folder.")
def main(names: tuple[str, ...], *, repeats: int, sizes: str, json_file: Path | None, profiles: Path | None) -> None:
    """Measure MESSIAHS beside its peers, and print medians with the lowest and highest of the repeats."""
    console = Console(width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    if profiles is not None and py_spy() is None:
        raise click.ClickException("py-spy is not installed: pip install '.[benchmarks]'")
    around = look_around()
    console.print(
        f"{around.processor}, {around.cores} cores, Linux {around.kernel}, Python {around.python}, "
        f"load average {around.load_average:.2f}"
    )
    if around.warning:
        console.print(around.warning, style="yellow")
    wanted = [row for row in all_rows() if not names or row.name in names]
    measured: list[Measured] = []
    try:
        # Row by row: those before a failure are in the list.
        with interruptible():
            measured.extend(
                _measured(row, sizes=sizes, repeats=repeats, profiles=profiles, console=console) for row in wanted
            )
    finally:
        # Results before a failure are shown, too.
        console.print(table_of(measured))
        for line in skipped_lines(measured):
            console.print(line, style="dim", markup=False)
        if json_file is not None:
            document = document_of(measured, around=around, repeats=repeats, sizes=sizes)
            json_file.write_text(json.dumps(document, indent=1) + "\n")


def _measured(row: Row, *, sizes: str, repeats: int, profiles: Path | None, console: Console) -> Measured:
    context: Profiled | None = None
    if profiles is not None:
        context = partial(profiled, row=row.name, into=profiles, console=console)
    with console.status(f"{row.name}: {row.what}") as status:
        return measure(row, SIZES[sizes], repeats=repeats, profiled=context, tell=status.update)


if __name__ == "__main__":
    main()
