"""Which module a command talks to, and the tasks of several modules at once."""

from pathlib import Path

from messiahs.cli.exit_codes import FEDERATION_FAILED
from messiahs.cli.options import PlaceOptions
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.module import ModuleClient
from messiahs.errors import ClientError


def client_for(task_id: str | None, options: PlaceOptions) -> ModuleClient:
    """Give a client of the module that was named, or that the task's id names."""
    return ModuleClient(locate_module(options["module"], task=task_id, state=options["state"]).socket)


def located(task_id: str | None, options: PlaceOptions) -> ModulePlace:
    """Give the module for `run` and `wait`, whose other codes are the task's own."""
    try:
        return locate_module(options["module"], task=task_id, state=options["state"])
    except ClientError as error:
        raise ClientError(str(error), code=FEDERATION_FAILED) from error


def tasks_of(ids: tuple[str, ...], options: PlaceOptions, *, members: bool = False) -> tuple[list[Document], list[str]]:
    """Give the tasks in the order of their ids, and the ids that are unknown; several modules are asked in turn."""
    tasks: list[Document] = []
    unknown: list[str] = []
    asked: dict[Path, list[str]] = {}
    for name in ids or (None,):
        socket = locate_module(options["module"], task=name, state=options["state"]).socket
        asked.setdefault(socket, []).extend([] if name is None else [name])
    for socket, names in asked.items():
        with ModuleClient(socket) as module:
            answer = module.tasks(*names, members=members)
        tasks += answer["tasks"]
        unknown += answer.get("unknown", [])
    return tasks, unknown
