"""Locating the module that a command addresses; collecting tasks from several modules."""

from collections.abc import Callable
from pathlib import Path

from messiahs.cli.exit_codes import FEDERATION_FAILED
from messiahs.cli.options import PlaceOptions
from messiahs.cli.output import print_text
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.module import ModuleClient
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, ModuleUnreachableError


def client_for(task_id: str | None, options: PlaceOptions) -> ModuleClient:
    """Return a client of the named module, or else of the module in the task's id."""
    return ModuleClient(locate_module(options["module"], task=task_id, state=options["state"]).socket)


def located(task_id: str | None, options: PlaceOptions) -> ModulePlace:
    """Locate the module for `run` and `wait`; failures exit 125, since other codes are the task's own."""
    try:
        return locate_module(options["module"], task=task_id, state=options["state"])
    except ClientError as error:
        raise ClientError(str(error), code=FEDERATION_FAILED) from error


def done_for_each(
    ids: tuple[str, ...], options: PlaceOptions, *, act: Callable[[ModuleClient, str], Document | None]
) -> tuple[list[Document], int]:
    """Do something with each task at its module; return what was done, and the exit code.

    A refusal is printed and the next task follows; a module that does not answer ends the command.
    """
    code, done = 0, []
    for name in ids:
        try:
            with client_for(name, options) as module:
                done.append(act(module, name) or {"id": name})
        except ModuleUnreachableError:
            raise
        except ClientError as error:
            code = error.code
            which = "" if name in str(error) else f"{name}: "
            print_text(printable(f"messiahs: {which}{error}"), err=True)
    return done, code


def tasks_of(ids: tuple[str, ...], options: PlaceOptions, *, members: bool = False) -> tuple[list[Document], list[str]]:
    """Return the tasks in the order of `ids`, and the unknown ids; queries each module once."""
    tasks: list[Document] = []
    unknown: list[str] = []
    by_socket: dict[Path, list[str]] = {}
    for name in ids or (None,):
        socket = locate_module(options["module"], task=name, state=options["state"]).socket
        by_socket.setdefault(socket, []).extend([] if name is None else [name])
    for socket, names in by_socket.items():
        with ModuleClient(socket) as module:
            answer = module.tasks(*names, members=members)
        tasks += answer["tasks"]
        unknown += answer.get("unknown", [])
    return tasks, unknown
