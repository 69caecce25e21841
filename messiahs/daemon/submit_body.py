"""The body of a submit: what a client may say, and what is wrong with it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import msgspec

from messiahs.core.attributes import EXTENSION_LIMIT, TASK_ATTRIBUTES, Kind, Value
from messiahs.core.descriptions import TDV, is_valid_value
from messiahs.core.events import AnswerTo, Submitted
from messiahs.core.ids import ClientKey
from messiahs.core.instants import SECOND
from messiahs.core.messages import Command, InputFile

_KEY_LIMIT = 64
_MODULES_OWN = ("origin", "user")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HASH_BYTES = 32


class InputBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An input of a submit; its content was uploaded before."""

    name: str
    sha256: str
    size: int
    executable: bool = False


class SubmitBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a submit; `tdv` is what the user states of one task, without `$`."""

    key: str
    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    tdv: dict[str, int | str] = msgspec.field(default_factory=dict)
    requirement: str = ""
    members: int = 0
    inputs: tuple[InputBody, ...] = ()
    outputs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    member_inputs: tuple[tuple[InputBody, ...], ...] = ()
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_s: int | None = None


def hashes_in(body: SubmitBody) -> Iterator[bytes]:
    """Name the content of all inputs."""
    for files in (body.inputs, *body.member_inputs):
        for file in files:
            yield bytes.fromhex(file.sha256)


def submitted_by(body: SubmitBody, tdv: TDV, *, answer_to: AnswerTo) -> Submitted:
    """Make the event of a body in which there is no problem."""
    return Submitted(
        answer_to=answer_to,
        key=ClientKey(body.key),
        tdv=tdv,
        requirement=body.requirement,
        command=Command(
            argv=body.argv,
            env=tuple(sorted(body.env.items())),
            inputs=_inputs_of(body.inputs),
            outputs=body.outputs,
        ),
        members=body.members,
        items=body.items,
        member_inputs=tuple(_inputs_of(files) for files in body.member_inputs),
        name=body.name,
        retries=body.retries,
        waits=body.waits,
        deadline_ns=body.deadline_s * SECOND if body.deadline_s is not None else None,
    )


def problem_of(body: SubmitBody) -> str:
    """Say what is wrong with a body; empty if nothing is."""
    problem = _problem_of_tdv(body.tdv) or _problem_of_files(body)
    if problem:
        return problem
    if any("\0" in word for word in (*body.argv, *body.env, *body.env.values())):
        return "a NUL byte cannot be passed to a program"
    if not all(map(_is_unicode, (*body.argv, *body.env, *body.env.values(), *body.items, body.name, body.requirement))):
        return "the command, its environment, name and items are to be UTF-8"
    if not body.key or len(body.key) > _KEY_LIMIT:
        return "the key of a submit has 1 to 64 characters"
    if any(not name or "=" in name for name in body.env):
        return "the name of an environment variable is empty or has a ="
    return ""


def _problem_of_tdv(tdv: Mapping[str, Value]) -> str:
    for name, value in tdv.items():
        known = TASK_ATTRIBUTES.get(name)
        if name in _MODULES_OWN:
            return f"${name} is not for users to state"
        if not _NAME.fullmatch(name):
            return f"${name} is no name of an attribute"
        if known is not None and known.kind is Kind.INTEGER and not isinstance(value, int):
            return f"${name} is an integer"
        if not is_valid_value(value):
            return f"${name} is out of range"
    if sum(name not in TASK_ATTRIBUTES for name in tdv) > EXTENSION_LIMIT:
        return f"a task states at most {EXTENSION_LIMIT} attributes of its own"
    return ""


def _problem_of_files(body: SubmitBody) -> str:
    for files in (body.inputs, *(body.inputs + own for own in body.member_inputs)):
        names = [file.name for file in files]
        for file in files:
            if problem := _problem_of_name(file.name):
                return problem
            if len(file.sha256) != 2 * _HASH_BYTES or not set(file.sha256) <= set("0123456789abcdef"):
                return f"input {file.name}: {file.sha256} is no SHA-256"
        if len(set(names)) != len(names):
            return "two inputs of a task have the same name"
        folders = {str(folder) for name in names for folder in PurePosixPath(name).parents}
        if clash := folders & set(names):
            return f"{clash.pop()} is both an input and the folder of one"
    return next(filter(None, map(_problem_of_name, body.outputs)), "")


def _problem_of_name(name: str) -> str:
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        return f"`{name}` is no relative path in a working directory"
    return ""


def _is_unicode(text: str) -> bool:
    # A client makes lone surrogates of bytes that are no UTF-8, and those cannot be stored.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _inputs_of(files: tuple[InputBody, ...]) -> tuple[InputFile, ...]:
    return tuple(
        InputFile(
            name=file.name,
            sha256=bytes.fromhex(file.sha256),
            size_bytes=file.size,
            is_executable=file.executable,
        )
        for file in files
    )
