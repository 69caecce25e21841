"""`messiahs topology apply`: a changed file for modules that run."""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from messiahs.cli.options import JSON, STATE, TOPOLOGY
from messiahs.cli.output import print_document, print_text
from messiahs.cli.topology.ending import Leavers, is_running, readmit
from messiahs.client.connection import Document
from messiahs.client.locating import searched_directory
from messiahs.client.module import ModuleClient
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, MessiahsError, explained

if TYPE_CHECKING:
    from messiahs.cli.federation.applying import Application
    from messiahs.config.settings import ModuleSettings
    from messiahs.config.topology.topology import Topology

_POLL_SECONDS: Final = 0.1
_START_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Report:
    """What was done, printed as it happens unless it is to be one document (mutable)."""

    as_json: bool
    modules: dict[str, Document] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""

    def say(self, line: str) -> None:
        if not self.as_json:
            print_text(printable(line))

    def taken_over(self, name: str, answer: Document) -> None:
        """Note what a module did; it may do so in two steps."""
        before = self.modules.get(name)
        found = {kind: answer[kind] for kind in ("applied", "waiting", "kept")}
        earlier = () if before is None else before["applied"]
        self.modules[name] = {**found, "applied": [*earlier, *found["applied"]]}
        lines = answer["applied"] if before is not None else list(_lines(answer)) or ["nothing changes"]
        for line in lines:
            self.say(f"{name}: {line}")

    def document(self) -> Document:
        """Return all of it for programs."""
        return {
            "modules": self.modules,
            "started": self.started,
            "ended": self.ended,
            "left": self.left,
            "notes": self.notes,
            "problem": self.problem,
        }


@click.command()
@TOPOLOGY
@click.option("--module", "modules", metavar="NAME", multiple=True, help="Only this module [all that run here].")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0),
    default=60,
    help="Seconds that modules which are gone from the file may take to become empty [60].",
)
@STATE
@JSON
def apply(
    topology_file: Path, *, modules: tuple[str, ...], wait_seconds: float, state: Path | None, as_json: bool
) -> int:
    """Let the modules of TOPOLOGY that run with this state directory take the changed file over while they run.

    Policies and neighbors change at once; a neighbor that is gone is linked until its claims have ended. What needs a
    restart, such as another address or machine, is printed and waits for it, and nothing is restarted. Neighbors that
    joined or were removed at run time stay as they are, and are printed. Where `messiahs up` runs the modules, new ones
    are started, and those that are gone from the file are drained, and ended when they are empty.

    Everything is checked before anything changes. A repetition changes nothing more, and completes an interrupted one.
    """
    from messiahs.cli.federation.private_folders import as_owner, check_federation
    from messiahs.config.topology.reading import load_topology

    topology = load_topology(topology_file, reads_trust=True)
    directory = searched_directory(state) / topology.federation
    if not directory.is_dir():
        raise ClientError(f"no module of `{topology.federation}` runs here: there is no {directory}")
    report = _Report(as_json=as_json)
    with as_owner(directory):
        check_federation(directory)
        _apply(topology, topology_file, directory, report, modules=modules, wait_seconds=wait_seconds)
    if as_json:
        print_document({"federation": topology.federation, **report.document()})
    if report.problem:
        raise ClientError(report.problem)
    return 1 if report.left else 0


def _apply(
    topology: "Topology",
    file: Path,
    directory: Path,
    report: _Report,
    *,
    modules: tuple[str, ...],
    wait_seconds: float,
) -> None:
    """Check everything, then change what the file changes; what cannot be completed is in the report."""
    from messiahs.cli.federation.applying import alone, application_of, check

    with alone(directory):
        todo = application_of(topology, file, directory=directory, only=modules)
        addresses = todo.addresses()
        settings = todo.settings(addresses)
        check(settings)
        _check_answers(settings[name] for name in (*todo.running, *todo.gone))
        try:
            _do(todo, addresses, report, wait_seconds=wait_seconds)
        except (MessiahsError, OSError) as error:
            text = explained(error) if isinstance(error, OSError) else str(error)
            rest = "the file is applied in part, and the same command continues once that is mended"
            report.problem = f"{text}; {rest} (`messiahs doctor` says what is wrong at each module)"
    for note in todo.notes:
        report.notes.append(note)
        report.say(note)


def _do(todo: "Application", addresses: dict[str, str], report: _Report, *, wait_seconds: float) -> None:
    settings = todo.settings(addresses)
    todo.begin(settings)
    if todo.new:
        _follow_plan(todo)
        for name in todo.new:
            _await_start(settings[name])
            report.started.append(name)
            report.say(f"{name}: started")
    readmit((settings[name] for name in (*todo.new, *todo.running)), report.say)
    leavers = Leavers(settings={name: settings[name] for name in todo.gone}, say=report.say)
    leavers.drain()
    staying = leavers.with_own_tasks()
    _take_over(todo, todo.settings(addresses, staying=staying), report)
    if todo.gone:
        _end(todo, leavers, report, deadline=time.monotonic() + wait_seconds, settings=settings)


def _take_over(todo: "Application", settings: "dict[str, ModuleSettings]", report: _Report) -> None:
    """Let each running module take its settings over."""
    from messiahs.config.settings import save_settings

    for name in (*todo.running, *todo.gone):
        each = settings[name]
        save_settings(each, each.directory / "settings.json")
        with ModuleClient(each.socket) as client:
            report.taken_over(name, client.apply_settings())


def _end(
    todo: "Application", leavers: Leavers, report: _Report, *, deadline: float, settings: "dict[str, ModuleSettings]"
) -> None:
    """End the modules that are gone from the file and empty, and leave those that are not empty in time."""
    leavers.await_end(deadline=deadline, on_own_tasks_ended=lambda: _take_over(todo, settings, report))
    todo.end(leavers.left)
    _follow_plan(todo)
    for name in leavers.ended:
        _await_end(settings[name])
        report.ended.append(name)
        report.say(f"{name}: ended")
    for name, text in leavers.left.items():
        report.left.append(name)
        report.say(f"{name}: is not empty yet ({text}); repeat this command later")


def _check_answers(modules: "Iterable[ModuleSettings]") -> None:
    for settings in modules:
        with ModuleClient(settings.socket) as client:
            client.module()


def _await_start(settings: "ModuleSettings") -> None:
    with ModuleClient(settings.socket, patience=_START_SECONDS) as client:
        client.module()


def _follow_plan(todo: "Application") -> None:
    from messiahs.daemon.supervision.supervisor import FOLLOW_PLAN

    assert todo.supervisor is not None
    try:
        os.kill(todo.supervisor.pid, FOLLOW_PLAN)
    except ProcessLookupError as error:
        raise ClientError("the federation was ended meanwhile") from error


def _await_end(settings: "ModuleSettings") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while is_running(settings):
        if time.monotonic() >= deadline:
            raise ClientError(f"{settings.name} does not end")
        time.sleep(_POLL_SECONDS)


def _lines(answer: Document) -> Iterator[str]:
    yield from answer["applied"]
    yield from (f"{line} (after a restart)" for line in answer["waiting"])
    yield from (f"differs from the file: {line}" for line in answer["kept"])
