"""`messiahs demo`: a campus on this machine with a real job, every result checked."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from messiahs.cli.demo.campus_job import Checked, checked_files, compress_everywhere, library, library_files
from messiahs.cli.examples import example
from messiahs.cli.federation.temporary import federation, interruptible, own_folder
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.cli.progress_reports import shown_steps
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient

TOPOLOGY, MODULE = "campus.yaml", "blays"
_SHOWN_PROBLEMS = 10
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Results of the demo."""

    files: tuple[Checked, ...]
    seconds: float

    @property
    def machines(self) -> dict[str, list[Checked]]:
        """Return the files by the machine that processed them, the busiest machine first."""
        found: dict[str, list[Checked]] = {}
        for file in self.files:
            found.setdefault(file.machine or "nobody", []).append(file)
        return dict(sorted(found.items(), key=lambda each: (-len(each[1]), each[0])))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problem of each file that has one."""
        return tuple(f"{file.name}: {file.problem}" for file in self.files if file.problem)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--keep", is_flag=True, help="Keep the modules' state and the outputs, and print where.")
def demo(*, as_json: bool, keep: bool) -> int:
    """Run a campus of modules on this machine and compress Python's standard library with it.

    One task for each file is submitted at one laboratory, and every output is checked against its file. No process is
    left running, and no file is left without --keep.
    """
    topology = example("topologies", TOPOLOGY)
    with interruptible(), own_folder(keep=keep) as folder:
        with federation(topology, folder / "state"):
            totals = _work(folder)
        if as_json:
            print_document(_document(totals, folder if keep else None))
        else:
            _print(totals, folder if keep else None)
    return 1 if totals.problems else 0


def _work(folder: Path) -> Totals:
    root = library()
    names = library_files(root)
    place = locate_module(MODULE, state=folder / "state")
    with shown_steps() as on_step, ModuleClient(place.socket) as module:
        begun_at = time.monotonic()
        members = compress_everywhere(module, root, names=names, on_step=on_step)
        seconds = time.monotonic() - begun_at
        files = []
        for file in checked_files(place.socket, members, root=root, names=names, into=folder / "outputs"):
            files.append(file)
            on_step("fetched and checked", len(files), len(names))
    return Totals(files=tuple(files), seconds=seconds)


def _document(totals: Totals, kept: Path | None) -> dict[str, object]:
    return {
        "tasks": len(totals.files),
        "machines": {machine: len(files) for machine, files in totals.machines.items()},
        "seconds": round(totals.seconds, 3),
        "bytes_in": sum(file.bytes_in for file in totals.files),
        "bytes_out": sum(file.bytes_out for file in totals.files),
        "problems": list(totals.problems),
        "kept": None if kept is None else str(kept),
    }


def _print(totals: Totals, kept: Path | None) -> None:
    rows = [
        (machine, len(files), _megabytes(sum(file.bytes_in for file in files)), _megabytes(_out(files)))
        for machine, files in totals.machines.items()
    ]
    print_table(("MACHINE", "TASKS", "IN", "OUT"), rows)
    for problem in totals.problems[:_SHOWN_PROBLEMS]:
        print_text(f"messiahs: {problem}", err=True)
    bytes_in = _megabytes(sum(file.bytes_in for file in totals.files))
    verdict = f"{len(totals.problems)} files are wrong" if totals.problems else "every file is correct"
    print_text(
        f"{len(totals.files)} tasks on {len(totals.machines)} machines in {totals.seconds:.1f} s: "
        f"{bytes_in} in, {_megabytes(_out(totals.files))} out; {verdict}"
    )
    if kept is not None:
        print_text(f"kept in {kept}")


def _out(files: Sequence[Checked]) -> int:
    return sum(file.bytes_out for file in files)


def _megabytes(count: int) -> str:
    return f"{count / _MEGABYTE:.1f} MB"
