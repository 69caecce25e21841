"""The keys of a task: the long names of the options of `submit`, and how the Python API calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from messiahs.core.interface.dependencies import When


class Kind(Enum):
    """What a key takes."""

    QUANTITY = auto()
    WHOLE = auto()
    TEXT = auto()
    PATH = auto()
    NAME_OR_PATH = auto()
    FLAG = auto()
    TEXTS = auto()
    INPUTS = auto()
    TASKS = auto()
    TEXTS_BY_NAME = auto()
    VALUES_BY_NAME = auto()
    AMOUNTS_BY_NAME = auto()
    VARIABLES = auto()
    NUMBERS = auto()
    LINES = auto()


@dataclass(frozen=True, slots=True)
class Option:
    """A key: its kind, and the name that the Python API has for the same (empty: it has none of its own)."""

    kind: Kind
    name: str = ""


OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "mem": Option(Kind.QUANTITY, "mem"),
        "disk": Option(Kind.QUANTITY, "disk"),
        "cpus": Option(Kind.WHOLE, "cpus"),
        "time": Option(Kind.QUANTITY, "time"),
        "deadline": Option(Kind.QUANTITY, "deadline"),
        "image": Option(Kind.PATH, "image"),
        "venv": Option(Kind.PATH, "venv"),
        "cwd": Option(Kind.TEXT, "cwd"),
        "conda": Option(Kind.NAME_OR_PATH, "conda"),
        "input": Option(Kind.INPUTS, "inputs"),
        "output": Option(Kind.TEXTS, "outputs"),
        "env-file": Option(Kind.VARIABLES, "env"),
        # After the files, over which it has precedence.
        "env": Option(Kind.TEXTS_BY_NAME, "env"),
        "env-module": Option(Kind.TEXTS, "env_modules"),
        "set": Option(Kind.VALUES_BY_NAME, "attributes"),
        "gpus": Option(Kind.WHOLE, "gpus"),
        "use": Option(Kind.AMOUNTS_BY_NAME, "uses"),
        "name": Option(Kind.TEXT, "name"),
        "require": Option(Kind.TEXT, "require"),
        "retries": Option(Kind.WHOLE, "retries"),
        "priority": Option(Kind.WHOLE, "priority"),
        "notify": Option(Kind.TEXT, "notify"),
        "no-wait": Option(Kind.FLAG, "waits"),
        "after": Option(Kind.TASKS, "after"),
        "after-any": Option(Kind.TASKS, "after_any"),
        "after-ok": Option(Kind.TASKS, "after_ok"),
        "after-each": Option(Kind.TASKS, "after_each"),
        "array": Option(Kind.NUMBERS),
        "each-line": Option(Kind.LINES),
    }
)
"""All options of `submit` but `--key`, which is one for the whole file."""
CONDITIONS: Final[Mapping[str, When]] = MappingProxyType(
    {"after": When.STARTED, "after-any": When.ENDED, "after-ok": When.OK, "after-each": When.EACH}
)
TASK_KEYS: Final = ("command", "matrix", *OPTIONS)
DEFAULT_KEYS: Final = tuple(key for key in OPTIONS if key not in {"name", *CONDITIONS})
"""What `defaults` may have: not what belongs to one task."""
JOINED_KINDS: Final = (Kind.TEXTS_BY_NAME, Kind.VALUES_BY_NAME, Kind.AMOUNTS_BY_NAME)
"""Kinds of which a task adds names to those of the defaults."""
