"""Locating the module that a command addresses; acting on tasks of several modules."""

from collections.abc import Callable
from typing import ClassVar

from messiahs.cli.exit_codes import FEDERATION_FAILED
from messiahs.cli.options import PlaceOptions
from messiahs.cli.output import print_text
from messiahs.client.connection import PATIENCE_SECONDS, Document
from messiahs.client.locating import BY_OPTIONS, ModulePlace, Naming, locate_module
from messiahs.client.module import ModuleClient
from messiahs.client.tasks import Client
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, ModuleUnreachableError


class CommandClient(Client):
    """A client whose errors name options of the command line."""

    _naming: ClassVar[Naming] = BY_OPTIONS


def client_of(options: PlaceOptions, *, patience: float | None = PATIENCE_SECONDS) -> Client:
    """Return a client of the named module, or else of the modules in the ids of tasks."""
    return CommandClient(options["module"], options["state"], patience=patience)


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

    A task that is named twice, or with its array, counts once. A refusal is printed and the next task follows; a module
    that does not answer ends the command.
    """
    code, done = 0, []
    for name in dict.fromkeys(each for each in ids if each.rpartition(".")[0] not in ids):
        try:
            with client_of(options) as client, client.at(name) as module:
                done.append(act(module, name) or {"id": name})
        except ModuleUnreachableError:
            raise
        except ClientError as error:
            code = error.code
            which = "" if name in str(error) else f"{name}: "
            print_text(printable(f"messiahs: {which}{error}"), err=True)
    return done, code
