"""The options of a task, and how values of Python become those that modules take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Final, TypedDict, cast

from messiahs.client.inputs import Source
from messiahs.config.quantities import duration_seconds
from messiahs.config.task_names import check_variable
from messiahs.config.task_values import QUANTITIES, RANGES, range_text
from messiahs.core.model.attributes import Value
from messiahs.core.model.texts import printable
from messiahs.errors import MessiahsError, OptionValueError


class TaskOptions(TypedDict, total=False):
    """What a user can say about a task beside its command; what is left out, or None, is as on the command line.

    Sizes are bytes or a text such as `"8GiB"`, times are seconds or a text such as `"15min"`. `time` is the longest run
    time, `deadline` the longest wait. An input is a path, or `"SRC:DST"` with its name in the task's working directory,
    where `"@ID/NAME"` is an output of another task. `attributes` go into the task's description (TDV), and `require`
    is a predicate on the machine. `uses` has the number of counted things by kind. Without `waits` the task is denied
    if no machine has room now. A repeated `key` submits nothing a second time. In an array `{}` in `command`, `inputs`,
    `outputs`, `env`, `attributes` and `name` is replaced by the member's item. `after`, `after_any` and `after_ok` have
    ids of tasks or arrays that must have started, ended, or ended with exit code 0 before, and `after_each` has ids of
    arrays of as many members, of which each must have ended with exit code 0 before that with its number. `notify` is a
    command that the module runs as the submitting account when the task, or the last member of an array, has ended, or
    the URL of a webhook. Numbers may be those of numpy, and floats that are whole.
    """

    mem: float | str | None
    disk: float | str | None
    cpus: int | None
    time: float | str | None
    deadline: float | str | None
    image: str | PathLike[str] | None
    venv: str | PathLike[str] | None
    conda: str | PathLike[str] | None
    cwd: str | PathLike[str] | None
    inputs: Sequence[str | PathLike[str] | Source]
    outputs: Sequence[str | PathLike[str]]
    env: Mapping[str, str | PathLike[str]]
    env_modules: Sequence[str]
    attributes: Mapping[str, Value]
    gpus: int | None
    uses: Mapping[str, int]
    name: str
    key: str | None
    require: str
    retries: int
    priority: int | None
    waits: bool
    after: Sequence[str]
    after_any: Sequence[str]
    after_ok: Sequence[str]
    after_each: Sequence[str]
    notify: str | None


class CheckedOptions(TypedDict, total=False):
    """The options of a task that are stated: sizes are bytes, and times are seconds."""

    mem: int
    disk: int
    cpus: int
    time: int
    deadline: int
    image: str | PathLike[str]
    venv: str | PathLike[str]
    conda: str
    cwd: str
    inputs: Sequence[str | PathLike[str] | Source]
    outputs: Sequence[str]
    env: Mapping[str, str]
    env_modules: Sequence[str]
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
    after_each: Sequence[str]
    notify: str


_TEXTS: Final = frozenset(("name", "require", "conda", "cwd", "notify"))
_LISTS: Final = frozenset(("inputs", "outputs", "env_modules", "after", "after_any", "after_ok", "after_each"))
_MAPPINGS: Final = frozenset(("env", "attributes", "uses"))


def checked_options(options: TaskOptions | CheckedOptions) -> CheckedOptions:
    """Return what is stated, with quantities as whole numbers, and paths among outputs and in `env` as texts.

    Raises `TypeError` for an option that does not exist and for a value of a wrong kind, `OptionValueError` for a
    number or a text that cannot be one; both name the option, the value and what is allowed.
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
    words = tuple(_text("a word of the command", word) for word in command)
    if not words:
        raise OptionValueError('the command has no word: name a program and its arguments, as in ["echo", "hello"]')
    return words


def checked_inputs(values: object) -> list[str | PathLike[str] | Source]:
    """Return a list of inputs; raises as `checked_options` does."""
    return cast("list[str | PathLike[str] | Source]", _list("inputs", values))


def checked_timeout(seconds: object) -> float | None:
    """Return a longest wait in seconds, None without one; raises `TypeError`."""
    if seconds is None:
        return None
    return checked_seconds("timeout", seconds)


def checked_age(name: str, age: object) -> float:
    """Return an age in seconds, given as a number of them or such as `"90min"`.

    Raises `TypeError`, or `OptionValueError` for a text that is no duration.
    """
    if not isinstance(age, str):
        return checked_seconds(name, age)
    try:
        return duration_seconds(age)
    except MessiahsError as error:
        raise OptionValueError(f"`{name}`: {error}") from error


def checked_seconds(name: str, seconds: object) -> float:
    """Return a number of seconds; raises `TypeError`."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise TypeError(f"`{name}` is a number of seconds, not {_shown(seconds)}")
    return float(seconds)


def checked_number(name: str, value: object) -> int:
    """Return a whole number; raises `TypeError`, or `OptionValueError` for one that is not whole."""
    return _whole(f"`{name}`", value)


def checked_folder(name: str, folder: object) -> Path:
    """Return a path; raises `TypeError`."""
    if not isinstance(folder, str | PathLike):
        raise TypeError(f"`{name}` is the path of a folder, not {_shown(folder)}")
    return Path(folder)


def checked_key(key: object) -> str | None:
    """Return the key of a submit, None without one; raises `TypeError`, or `OptionValueError` for an empty one."""
    if key == "":
        raise OptionValueError("`key` is empty, so a repeated submit would be another task: give one, or leave it out")
    return None if key is None else _text("`key`", key)


def _checked(name: str, value: object) -> object:
    if name in QUANTITIES and isinstance(value, str):
        return _quantity(name, value)
    if name in RANGES:
        return _whole(f"`{name}`", value, within=RANGES[name])
    if name == "key":
        return checked_key(value)
    if name in _TEXTS:
        return _text(f"`{name}`", value)
    if name in _LISTS:
        return _list(name, value)
    if name in _MAPPINGS:
        return _mapping(name, value)
    if name == "waits" and not isinstance(value, bool):
        raise TypeError(f"`waits` is True or False, not {_shown(value)}")
    return value


def _quantity(name: str, text: str) -> int:
    """Return a quantity in bytes or seconds; an error says how to write it."""
    try:
        return QUANTITIES[name](text)
    except MessiahsError as error:
        raise OptionValueError(f"`{name}`: {error}") from error


def _whole(what: str, value: object, *, within: tuple[int, int] | None = None) -> int:
    allowed = "a whole number" if within is None else f"a whole number {range_text(within)}"
    if isinstance(value, bool) or not isinstance(value, Integral | Real):
        raise TypeError(f"{what} is {allowed}, not {_shown(value)}")
    if isinstance(value, Integral):
        whole = int(value)
    elif float(value).is_integer():
        whole = int(float(value))
    else:
        raise OptionValueError(f"{what} is {allowed}, not {_shown(value)}")
    if within is not None and not within[0] <= whole <= within[1]:
        raise OptionValueError(f"{what} is {allowed}, not {_shown(value)}")
    return whole


def _text(what: str, value: object) -> str:
    text = fspath(value) if isinstance(value, PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not {_shown(value)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionValueError(f"{what} is not UTF-8: {printable(text)}") from None
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
    for each in values if name == "env" else ():
        check_variable(_text("a name", each))
    reads: Mapping[str, Callable[[str, object], Value]] = {"env": _text, "attributes": _value, "uses": _amount}
    return {
        _text(f"a name in `{name}`", key): reads[name](f"`{name}[{key!r}]`", value) for key, value in values.items()
    }


def _amount(what: str, value: object) -> int:
    return _whole(what, value, within=RANGES["gpus"])


def _value(what: str, value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, str | Integral | Real):
        raise TypeError(f"{what} is a text or a whole number, not {_shown(value)}")
    return _text(what, value) if isinstance(value, str) else _whole(what, value)


def _shown(value: object) -> str:
    return f"{printable(repr(value))[:100]} ({type(value).__name__})"
