"""`messiahs module …`: run one module in production, list modules, show a module's vectors."""

import os
from pathlib import Path

import click

from messiahs.cli.module.explaining import explain_module
from messiahs.cli.module.membership import drain, leave, remove, undrain
from messiahs.cli.module.parent import parent
from messiahs.cli.module.preview import preview, vector_lines
from messiahs.cli.module.revoke import list_attempts, revoke
from messiahs.cli.module.running import run_module
from messiahs.cli.options import JSON, MODULE, QUIET, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.cli.policy.load import show_policy
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, check_permission, known_modules, locate_module, searched_directory
from messiahs.client.looking import looking_at
from messiahs.client.module import ModuleClient
from messiahs.core.model.task_limits import at_most_text
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, ModuleSilentError, ModuleUnreachableError

_DESCRIPTION = (
    "name", "federation", "pid", "address", "machine", "parents", "primary_parent", "children", "siblings", "notes",
)  # fmt: skip
"""Keys of a module's entry in `module list`."""

_KNOWN_BEST = ("parents", "primary_parent", "children", "siblings", "notes")
"""Those that change while a module runs."""


@click.group()
def module() -> None:
    """Run and inspect scheduling modules."""


module.add_command(show_policy)
module.add_command(explain_module)
module.add_command(preview)
module.add_command(list_attempts)
module.add_command(revoke)
module.add_command(parent)
module.add_command(run_module)
module.add_command(drain)
module.add_command(undrain)
module.add_command(remove)
module.add_command(leave)


@module.command("list")
@STATE
@JSON
@QUIET
def list_modules(*, state: Path | None, as_json: bool, quiet: bool) -> None:
    """List every module under the state directory, running or not.

    MACHINE is how a machine contains tasks (process or sandbox), and yes for one that does not say. Below the table are
    the most that a task may have on a machine, if its topology sets that, and what is wrong.
    """
    directory = searched_directory(state)
    modules = [found for place in known_modules(directory) if (found := _described(place))]
    if not modules:
        check_permission(directory)
        _say_what_is_closed(directory)
    if as_json:
        print_document({"modules": modules})
    elif quiet:
        for found in modules:
            print_text(found["name"])
    else:
        header = ("NAME", "FEDERATION", "PROCESS", "ADDRESS", "MACHINE", "PARENTS", "CHILDREN", "SIBLINGS")
        print_table(header, [_row(found) for found in modules])
        for found in modules:
            if found["at_most"]:
                print_text(f"{found['name']}: a task has at most {at_most_text(found['at_most'])}")
            for note in found["notes"]:
                print_text(printable(f"{found['name']}: {note}"))


def _say_what_is_closed(directory: Path) -> None:
    """Say of the modules that are there why this account sees none of them."""
    from messiahs.client.local_sockets import why_closed

    for place in known_modules(directory):
        if place.socket.exists() and not os.access(place.socket, os.W_OK):
            print_text(f"messiahs: {why_closed(place.socket)}", err=True)


@module.command()
@MODULE
@STATE
@JSON
def vectors(*, module: str | None, state: Path | None, as_json: bool) -> None:
    """Show the vectors that a module sends, and its views of its neighbors."""
    with ModuleClient(locate_module(module, state=state).socket) as client:
        document = client.vectors()
    if as_json:
        print_document(document)
        return
    for kind, whose in (("up", "parents"), ("down", "children"), ("sibling", "siblings")):
        _show(f"sent to {whose}", document[kind])
    for neighbor, view in document.get("views", {}).items():
        _show(f"view of {neighbor} ({view.get('relation')})", view)


def _show(title: str, vector: Document) -> None:
    for line in vector_lines(title, vector):
        print_text(printable(line))


def _described(place: ModulePlace) -> Document | None:
    """Describe a module from its settings, with its process if it runs; None if it has no settings.

    One that answers knows its neighbors better: some have joined or left while it ran.

    Where its settings are not readable, or elsewhere, returns the module's own description, or None while it is down.
    """
    from messiahs.config.settings import load_settings
    from messiahs.daemon.process.pid_files import recorded_process

    file = place.directory / "settings.json"
    try:
        file.stat()
    except FileNotFoundError:
        # A folder of sockets has no settings.
        return _own_description(place) if place.socket.exists() else None
    except PermissionError:
        return _own_description(place)
    settings = load_settings(file)
    process = recorded_process(place.directory / "daemon.pid")
    neighbors = [link.neighbor for link in settings.neighbors]
    described: Document = {
        "name": settings.name,
        "federation": settings.federation,
        "pid": None if process is None else process.pid,
        "address": settings.listen,
        "machine": settings.machine is not None,
        "isolation": None,
        "at_most": settings.machine.at_most if settings.machine is not None else {},
        "parents": [other.system for other in neighbors if other.is_parent],
        "primary_parent": next((other.system for other in neighbors if other.is_primary_parent), None),
        "children": [other.system for other in neighbors if other.is_child],
        "siblings": [other.system for other in neighbors if other.is_sibling],
        "notes": [],
    }
    if process is None:
        return described
    try:
        with looking_at(place, process.pid) as client:
            answer = client.module()
    except ModuleSilentError as error:
        return {**described, "notes": [str(error)]}
    except ClientError:
        # It is just starting or ending.
        return described
    return {**described, **_known_best(answer)}


def _own_description(place: ModulePlace) -> Document | None:
    """Return a running module's own description, or that it is stopped; None if it is silent or closed."""
    try:
        with looking_at(place, None) as client:
            answer = client.module()
    except ClientError as error:
        is_stopped = isinstance(error, ModuleUnreachableError) and not isinstance(error, ModuleSilentError)
        return _of_stopped(place) if is_stopped and place.socket.exists() else None
    # Modules of earlier releases do not say it.
    at_most = answer.get("at_most", {})
    return {**{name: answer[name] for name in _DESCRIPTION}, "at_most": at_most, **_known_best(answer)}


def _of_stopped(place: ModulePlace) -> Document:
    """Describe a stopped module whose settings this account cannot read."""
    known: Document = {"name": place.module, "federation": place.federation, "at_most": {}, "notes": []}
    unknown = ("pid", "address", "machine", "isolation", "primary_parent")
    return {**known, **dict.fromkeys(unknown), "parents": [], "children": [], "siblings": []}


def _known_best(answer: Document) -> Document:
    contained = answer.get("containment")
    known: Document = {name: answer[name] for name in _KNOWN_BEST}
    return {**known, "isolation": None if contained is None else contained["isolation"]}


def _row(found: Document) -> tuple[str, ...]:
    return (
        found["name"],
        found["federation"],
        "down" if found["pid"] is None else str(found["pid"]),
        found["address"] or "-",
        "-" if found["machine"] is None else found["isolation"] or "yes" if found["machine"] else "no",
        *(", ".join(found[relation]) or "-" for relation in ("parents", "children", "siblings")),
    )
