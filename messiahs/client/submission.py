"""A submission: a command, its requirements, and its files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from messiahs.client.connection import Document
from messiahs.core.interface.dependencies import When


def new_key() -> str:
    """Return a random key that makes repeating a submit harmless."""
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file at `name` in a task's working directory; the module has its content under `sha256`.

    With a target it is a symbolic link, and an empty folder has no content either.
    """

    name: str
    sha256: str = ""
    size_bytes: int = 0
    is_executable: bool = False
    link_target: str = ""
    is_folder: bool = False

    def document(self) -> Document:
        """Return the part of the request for this file."""
        if self.link_target:
            return {"name": self.name, "link": self.link_target}
        if self.is_folder:
            return {"name": self.name, "folder": True}
        return {"name": self.name, "sha256": self.sha256, "size": self.size_bytes, "executable": self.is_executable}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterOutput:
    """An output of a task that has not ended, which the module makes the input `to` once it has."""

    task: str
    name: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a user wants to run; `tdv` describes one task, and `members` is 0 for a single task.

    With `items` there is one member for each, for which `{}` stands; without them `{}` stands for a member's number.
    At most `at_once` members (0: all) are placed or run at the same time.
    `inputs` go to every member, `member_inputs` (one tuple for each member, or none at all) to one. `key` is random, so
    that a submission that is sent twice is stored once. A task that `takes_stdin` waits for `ModuleClient.feed`.
    `after` are ids of tasks, each with `started`, `ended` or `ok`: what has to have happened before. Tasks of which
    outputs are `wanted` have to end well, too.
    `notify` is a command or a URL for its end.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    tdv: Mapping[str, int | str] = field(default_factory=dict)
    requirement: str = ""
    members: int = 0
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_seconds: int | None = None
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    at_once: int = 0
    member_inputs: tuple[tuple[InputFile, ...], ...] = ()
    takes_stdin: bool = False
    terminal: tuple[int, int] | None = None
    """The rows and columns of the terminal of the task; `ModuleClient.feed` brings frames to it then."""
    cwd: str = ""
    after: tuple[tuple[str, str], ...] = ()
    wanted: tuple[LaterOutput, ...] = ()
    notify: str = ""
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        assert not self.items or self.members == len(self.items), "there is one member for each item"
        assert not self.member_inputs or self.members == len(self.member_inputs), "every member has its inputs"

    def document(self) -> Document:
        """Return the body of the request, without what is empty or false."""
        files: Document = {
            "inputs": [each.document() for each in self.inputs],
            "outputs": list(self.outputs),
            "items": list(self.items),
            "at_once": self.at_once,
            "stdin": self.takes_stdin,
            "terminal": self.terminal and dict(zip(("rows", "columns"), self.terminal, strict=True)),
            "cwd": self.cwd,
            "notify": self.notify,
            "member_inputs": [[each.document() for each in inputs] for inputs in self.member_inputs],
            "after": self._conditions(),
        }
        return {
            "key": self.key,
            "argv": list(self.argv),
            "env": dict(self.env),
            "tdv": dict(self.tdv),
            "requirement": self.requirement,
            "members": self.members,
            "name": self.name,
            "retries": self.retries,
            "waits": self.waits,
            "deadline_s": self.deadline_seconds,
            **{part: value for part, value in files.items() if value},
        }

    def _conditions(self) -> list[Document]:
        outputs: dict[str, list[Document]] = {}
        for each in self.wanted:
            outputs.setdefault(each.task, []).append({"name": each.name, "to": each.to})
        plain = (one for one in self.after if one[1] != When.OK or one[0] not in outputs)
        taken = ({"on": task, "when": When.OK.value, "outputs": found} for task, found in outputs.items())
        return [*({"on": task, "when": when} for task, when in plain), *taken]
