"""MESSIAHS: pool machines across sites without giving up control of any of them.

`connect` gives a client of the local module, `AsyncClient` is one for asyncio, and `Executor` runs Python functions as
tasks. `messiahs.joblib` is a backend of joblib. The types of all names are in `__init__.pyi`, as this file may import
nothing of the layers: every layer imports it.
"""

from importlib import import_module
from typing import Final

__version__ = "0.2.0"

_HOMES: Final = {
    "AsyncClient": "messiahs.client.asynchronous",
    "Client": "messiahs.client.tasks",
    "ClientError": "messiahs.errors",
    "Executor": "messiahs.client.futures.executor",
    "MessiahsError": "messiahs.errors",
    "ModuleUnreachableError": "messiahs.errors",
    "PythonMismatchError": "messiahs.errors",
    "TaskFailedError": "messiahs.errors",
    "TaskPlan": "messiahs.client.plans",
    "TaskStatus": "messiahs.client.status",
    "UnknownTaskError": "messiahs.errors",
    "WorkflowError": "messiahs.errors",
    "connect": "messiahs.client.tasks",
}

__all__ = tuple(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that commands and daemons do not load what they do not need."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `messiahs` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """List the public names, also those that were not used yet: interpreters complete them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
