"""The options of a task, and how values of Python become those that modules take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Final, TypedDict, cast

from messiahs.client.inputs import Source
from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.core.model.attributes import Value
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, MessiahsError


class TaskOptions(TypedDict, total=False):
    """What a user can say about a task beside its command; what is left out, or None, is as on the command line.

    Sizes are bytes or a text such as `"8GiB"`, times are seconds or a text such as `"15min"`. `time` is the longest run
    time, `deadline` the longest wait. An input is a path, or `"SRC:DST"` with its name in the task's working directory.
    `attributes` go into the task's description (TDV), and `require` is a predicate on the machine. `uses` has the
    number of counted things by kind. Without `waits` the task is denied if no machine has room now. A repeated `key`
    submits nothing a second time. In an array `{}` in `command`, `inputs`, `outputs`, `env`, `attributes` and `name` is
    replaced by the member's item. `after`, `after_any` and `after_ok` have ids of tasks or arrays that must have
    started, ended, or ended with exit code 0 before. Numbers may be those of numpy, and floats that are whole.
    """

    mem: float | str | None
    disk: float | str | None
    cpus: int | None
    time: float | str | None
    deadline: float | str | None
    image: str | PathLike[str] | None
    inputs: Sequence[str | PathLike[str] | Source]
    outputs: Sequence[str | PathLike[str]]
    env: Mapping[str, str | PathLike[str]]
    attributes: Mapping[str, Value]
    gpus: int | None
    uses: Mapping[str, int]
    name: str
    key: str
    require: str
    retries: int
    priority: int | None
    waits: bool
    after: Sequence[str]
    after_any: Sequence[str]
    after_ok: Sequence[str]


class CheckedOptions(TypedDict, total=False):
    """The options of a task that are stated: sizes are bytes, and times are seconds."""

    mem: int
    disk: int
    cpus: int
    time: int
    deadline: int
    image: str | PathLike[str]
    inputs: Sequence[str | PathLike[str] | Source]
    outputs: Sequence[str]
    env: Mapping[str, str]
    attributes: Mapping[str, Value]
    gpus: int
    uses: Mapping[str, int]
    name: str
    key: str
    require: str
    retries: int
    priority: int
    waits: bool
    after: Sequence[str]
    after_any: Sequence[str]
    after_ok: Sequence[str]


_QUANTITIES: Final[Mapping[str, Callable[[str], int]]] = {
    "mem": size_bytes,
    "disk": size_bytes,
    "time": duration_seconds,
    "deadline": duration_seconds,
}
_ABOVE_ZERO: Final = frozenset(("mem", "disk", "time"))
_NUMBERS: Final = frozenset(("cpus", "gpus", "retries", "priority"))
_TEXTS: Final = frozenset(("name", "key", "require"))
_LISTS: Final = frozenset(("inputs", "outputs", "after", "after_any", "after_ok"))
_MAPPINGS: Final = frozenset(("env", "attributes", "uses"))


def checked_options(options: TaskOptions | CheckedOptions) -> CheckedOptions:
    """Return what is stated, with quantities as whole numbers, and paths among outputs and in `env` as texts.

    Raises `TypeError` for an option that does not exist and for a value of a wrong kind, `ClientError` with the code 2
    for a number or a text that cannot be one; both name the option.
    """
    unknown = next((name for name in options if name not in TaskOptions.__annotations__), None)
    if unknown is not None:
        raise TypeError(f"a task has no option `{unknown}`; those are {', '.join(TaskOptions.__annotations__)}")
    given = {name: _checked(name, value) for name, value in options.items() if value is not None}
    return cast("CheckedOptions", given)


def checked_command(command: Iterable[object]) -> tuple[str, ...]:
    """Return the words of a command, whose paths become texts; raises as `checked_options` does."""
    if isinstance(command, str | bytes):
        raise TypeError('a command is a list of words: ["sh", "-c", text] runs a text in a shell')
    return tuple(_text("a word of the command", word) for word in command)


def _checked(name: str, value: object) -> object:
    if name in _QUANTITIES:
        return _quantity(name, value)
    if name in _NUMBERS:
        return _whole(f"`{name}`", value)
    if name in _TEXTS:
        return _text(f"`{name}`", value)
    if name in _LISTS:
        return _list(name, value)
    if name in _MAPPINGS:
        return _mapping(name, value)
    if name == "waits" and not isinstance(value, bool):
        raise TypeError(f"`waits` is True or False, not {_shown(value)}")
    return value


def _quantity(name: str, given: object) -> int:
    """Return a quantity in bytes or seconds, which may be a text with a unit; an error says how to write it."""
    if isinstance(given, str):
        try:
            value = _QUANTITIES[name](given)
        except MessiahsError as error:
            raise _wrong(f"`{name}`: {error}") from error
    else:
        value = _whole(f"`{name}`", given)
    if value < 0:
        raise _wrong(f"`{name}` cannot be negative: {_shown(given)}")
    if value == 0 and name in _ABOVE_ZERO:
        raise _wrong(f"`{name}` must be more than 0: leave it out if the task states none")
    return value


def _whole(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral | Real):
        raise TypeError(f"{what} is a whole number, not {_shown(value)}")
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    if not number.is_integer():
        raise _wrong(f"{what} is a whole number, not {_shown(value)}")
    return int(number)


def _text(what: str, value: object) -> str:
    text = fspath(value) if isinstance(value, PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not {_shown(value)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong(f"{what} is not UTF-8: {printable(text)}") from None
    return text


def _list(name: str, values: object) -> list[object]:
    if isinstance(values, str):
        raise TypeError(f"`{name}` is a list of texts, not one text")
    if not isinstance(values, Iterable):
        raise TypeError(f"`{name}` is a list of texts, not {_shown(values)}")
    if name == "inputs":
        # Their names are checked when their files are read.
        return list(values)
    return [_text(f"one of `{name}`", value) for value in values]


def _mapping(name: str, values: object) -> dict[str, object]:
    if not isinstance(values, Mapping):
        raise TypeError(f"`{name}` has values by their names, and is not {_shown(values)}")
    reads: Mapping[str, Callable[[str, object], Value]] = {"env": _text, "attributes": _value, "uses": _whole}
    return {
        _text(f"a name in `{name}`", key): reads[name](f"`{name}[{key!r}]`", value) for key, value in values.items()
    }


def _value(what: str, value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, str | Integral | Real):
        raise TypeError(f"{what} is a text or a whole number, not {_shown(value)}")
    return _text(what, value) if isinstance(value, str) else _whole(what, value)


def _shown(value: object) -> str:
    return f"{printable(repr(value))[:100]} ({type(value).__name__})"


def _wrong(text: str) -> ClientError:
    return ClientError(text, code=ClientError.USAGE)
