"""Options shared by several commands, and the types of their values."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from messiahs.cli.array_size import each_line, numbered
from messiahs.cli.shell.completing import files, module_names, task_ids
from messiahs.client.inputs import Source, source_of
from messiahs.client.task_options import TaskOptions
from messiahs.client.task_outputs import task_output_of
from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.config.task_names import checked_name
from messiahs.config.task_values import QUANTITIES, RANGES, range_text
from messiahs.config.text_files import variables_of
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Value
from messiahs.core.model.counted import THINGS, problem_of_name
from messiahs.errors import MessiahsError

F = TypeVar("F", bound=Callable[..., object])
V = TypeVar("V")

_INTEGER = re.compile(r"-?[0-9]+")
_AMOUNT = re.compile(r"[0-9]{1,4}")
_DIGITS = 19
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class PlaceOptions(TypedDict):
    """Options that choose a module and the form of its answer."""

    module: str | None
    state: Path | None
    as_json: bool
    quiet: bool


class SubmitOptions(PlaceOptions):
    """Options of `run` and `submit`."""

    mem: int | None
    disk: int | None
    cpus: int | None
    time: int | None
    image: str | None
    venv: str | None
    conda: str | None
    cwd: str | None
    env_modules: tuple[str, ...]
    inputs: tuple[Source | str, ...]
    outputs: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    env_files: tuple[dict[str, str], ...]
    sets: tuple[tuple[str, int | str], ...]
    gpus: int | None
    uses: tuple[tuple[str, int], ...]
    name: str
    key: str | None
    require: str
    retries: int
    priority: int | None
    deadline: int | None
    no_wait: bool
    after: tuple[str, ...]
    after_any: tuple[str, ...]
    after_ok: tuple[str, ...]
    after_each: tuple[str, ...]
    notify: str | None


def _as_parameter(read: Callable[[str], V]) -> Callable[[str], V]:
    def value(text: str) -> V:
        try:
            return read(text)
        except MessiahsError as error:
            raise click.BadParameter(str(error)) from error

    value.__name__ = "quantity"
    return value


DURATION = _as_parameter(duration_seconds)
"""A duration such as `90s`, in seconds."""


def _whole(name: str) -> Callable[[str], int]:
    """Return what reads the number of an option of tasks."""

    def number(text: str) -> int:
        lowest, highest = RANGES[name]
        # Python reads no number of thousands of digits.
        if not _INTEGER.fullmatch(text) or not lowest <= int(text[: _DIGITS + 2]) <= highest:
            raise click.BadParameter(f"`{text}` is not a whole number {range_text(RANGES[name])}")
        return int(text)

    return number


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"`{text}` is not NAME=VALUE")
    return name, value


def attribute_value(text: str) -> tuple[str, Value]:
    """Read `k=v`, where v is an integer or else a string, or `k:=LITERAL` of the predicate language.

    Integers beyond 64 bits are limited to the nearest value outside of the range.
    """
    name, equals, value = text.partition("=")
    is_literal = name.endswith(":")
    name = name.removesuffix(":")
    if not equals or not _NAME.fullmatch(name):
        raise click.BadParameter(f"`{text}` is not NAME=VALUE or NAME:=LITERAL, with NAME as in a predicate without $")
    return name, _literal(text, value) if is_literal else _value(value)


def _attribute(text: str) -> tuple[str, Value]:
    """Read an attribute of a task; integers beyond 64 bits are refused, as modules refuse them."""
    name, value = attribute_value(text)
    if isinstance(value, int) and not INTEGER_LOWEST <= value <= INTEGER_HIGHEST:
        raise click.BadParameter(f'`{text}`: an integer has at most 64 bits; NAME:="5" states a string of digits')
    return name, value


def _use(text: str) -> tuple[str, int]:
    """Read how many counted things of one kind a task needs."""
    name, _, amount = text.partition("=")
    if problem := problem_of_name(name):
        raise click.BadParameter(f"`{text}` is not NAME=N: {problem}")
    if not _AMOUNT.fullmatch(amount) or not 1 <= int(amount) <= THINGS:
        raise click.BadParameter(f"`{text}` is not NAME=N, with N from 1 to {THINGS}")
    return name, int(amount)


def _value(text: str) -> Value:
    if not _INTEGER.fullmatch(text):
        return text
    digits = text.lstrip("-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= _DIGITS else 2 * INTEGER_HIGHEST
    return -value if text.startswith("-") else value


def _literal(text: str, literal: str) -> Value:
    from messiahs.errors import PredicateError
    from messiahs.language.predicate.parsing import parse_literal

    try:
        return parse_literal(literal)
    except PredicateError as error:
        raise click.BadParameter(f"`{text}`: {error.message}") from error


def _after(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar="ID", shell_complete=task_ids, help=text)


def _input(text: str) -> Source | str:
    return source_of(text) if task_output_of(text) is None else text


def _output(text: str) -> str:
    # `{}` is replaced later; the names of all members are checked then.
    plain = _as_parameter(checked_name)(text)
    return text if PLACEHOLDER in text else plain


SIZE = _as_parameter(size_bytes)
"""Option type: a size in bytes, such as 64MiB."""
# A folder that a user may enter and not read can be the right one.
_FOLDER = click.Path(path_type=Path, readable=False)
STATE = click.option("--state", type=_FOLDER, help="The state directory [env: MESSIAHS_STATE].")
SOCKETS = click.option(
    "--sockets",
    type=_FOLDER,
    metavar="DIR",
    help="Where users find the sockets [the state directory].",
)
MODULE = click.option(
    "--module", metavar="NAME", shell_complete=module_names, help="The module to contact [env: MESSIAHS_MODULE]."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print ids only.")
ARRAY = click.option(
    "--array",
    type=_as_parameter(numbered),
    metavar="NUMBERS",
    help="Submit a task for each number, as in 0-99, 1,4,9 or 0-99:5 (every fifth); {} is the number. With %20 at the"
    " end at most 20 of them run at once.",
)
EACH_LINE = click.option(
    "--each-line",
    type=_as_parameter(each_line),
    metavar="FILE",
    shell_complete=files,
    help="Submit a task for each line of FILE (-: stdin); {} is the line.",
)
WORKFLOW_FILE = click.option(
    "--file",
    "workflow_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Submit the tasks of FILE (YAML), all or none, and print their names and ids. Its keys are these options.",
)
TASK_IDS = click.argument("ids", metavar="ID…", nargs=-1, required=True, shell_complete=task_ids)
TOPOLOGY = click.argument("topology_file", metavar="TOPOLOGY", type=click.Path(path_type=Path))

_PLACE = (MODULE, STATE, JSON, QUIET)
_PLACE_WITHOUT_IDS = (MODULE, STATE, JSON, click.option("--quiet", "-q", is_flag=True, hidden=True))
_SUBMIT = (
    click.option(
        "--mem",
        type=_as_parameter(QUANTITIES["mem"]),
        metavar="SIZE",
        help="Memory that one task needs: 8GiB, 500MB. If it takes more, it is ended (memory_limit) where its machine"
        " has control groups.",
    ),
    click.option(
        "--disk",
        type=_as_parameter(QUANTITIES["disk"]),
        metavar="SIZE",
        help="Disk that one task needs: 10GiB. If its folder takes more, it is ended (disk_limit).",
    ),
    click.option(
        "--cpus",
        type=_whole("cpus"),
        metavar="N",
        help="Slots that one task takes [1]. With more busy threads it is slowed down where its machine has control"
        " groups.",
    ),
    click.option(
        "--time",
        type=_as_parameter(QUANTITIES["time"]),
        metavar="TIME",
        help="Longest run time: 90s, 15min, 2d. If it takes longer, it is ended (time_limit).",
    ),
    click.option(
        "--image",
        metavar="PATH",
        shell_complete=files,
        help="Run in an OCI image: an archive, or a folder with its layout. Nothing is pulled.",
    ),
    click.option(
        "--venv",
        metavar="DIR",
        shell_complete=files,
        help="Bring a virtual environment of Python: the task finds it in the same place, first on its PATH.",
    ),
    click.option(
        "--conda",
        metavar="NAME|PREFIX",
        shell_complete=files,
        help="Bring an environment of conda in the same way.",
    ),
    click.option(
        "--env-module",
        "env_modules",
        multiple=True,
        metavar="NAME",
        help="Load an environment module (Lmod, Tcl) of the machine before the command, where it has them.",
    ),
    click.option(
        "--cwd",
        metavar="DIR",
        help="Start in DIR: a folder of the machine, or one below the task's working directory [that].",
    ),
    click.option(
        "--input",
        "inputs",
        type=_input,
        multiple=True,
        metavar="SRC[:DST]",
        shell_complete=files,
        help="Copy a file or folder, or @ID/NAME of another task, into the working directory, as DST [its own name].",
    ),
    click.option(
        "--output",
        "outputs",
        type=_output,
        multiple=True,
        metavar="NAME",
        help="A file or folder in the task's working directory to fetch when it ends.",
    ),
    click.option("--env", type=_assignment, multiple=True, metavar="NAME=VALUE", help="Set a variable for the task."),
    click.option(
        "--env-file",
        "env_files",
        type=_as_parameter(variables_of),
        multiple=True,
        metavar="FILE",
        shell_complete=files,
        help="Set the variables in FILE, a line NAME=VALUE for each; --env has precedence.",
    ),
    click.option(
        "--set", "sets", type=_attribute, multiple=True, metavar="NAME=VALUE", help="Add an attribute to the task."
    ),
    click.option(
        "--gpus",
        type=_whole("gpus"),
        metavar="N",
        help="GPUs that one task has for itself [none]: CUDA_VISIBLE_DEVICES names them. Enforced in sandboxes only.",
    ),
    click.option(
        "--use",
        "uses",
        type=_use,
        multiple=True,
        metavar="NAME=N",
        help="Counted things of a machine, such as licences, that one task has for itself.",
    ),
    click.option("--name", default="", help="Display name."),
    click.option("--require", default="", metavar="PREDICATE", help="Predicate on the machine: '$speed > 400'."),
    click.option(
        "--retries",
        type=_whole("retries"),
        metavar="N",
        default="0",
        help="Maximum reruns if the exit code is not 0 [0].",
    ),
    click.option(
        "--priority",
        type=_whole("priority"),
        metavar="N",
        help="Rank among your own waiting tasks, -100 to 100 [0].",
    ),
    click.option(
        "--deadline",
        type=_as_parameter(QUANTITIES["deadline"]),
        metavar="TIME",
        help="Deny the task if it still waits after TIME.",
    ),
    _after("--after", "Wait until a task or array runs, or has ended."),
    _after("--after-any", "Wait until a task or array has ended, in whatever way."),
    _after("--after-ok", "Wait until a task or array has ended with exit code 0; be denied if it ends otherwise."),
    _after("--after-each", "Let each member wait for that with its number in another array to end with exit code 0."),
    click.option("--notify", metavar="COMMAND|URL", help="At its end, run COMMAND as you, or post to URL."),
    click.option("--no-wait", is_flag=True, help="Deny the task if no machine has room now."),
    click.option("--key", metavar="TEXT", help="Repeating a submit with the same key returns the same id."),
)


def place_options(function: F) -> F:
    """Add the options that choose a module and the form of output."""
    for option in reversed(_PLACE):
        function = option(function)
    return function


def place_options_without_ids(function: F) -> F:
    """Add the same options to commands that print no ids; `--quiet` is accepted without effect."""
    for option in reversed(_PLACE_WITHOUT_IDS):
        function = option(function)
    return function


def submit_options(function: F) -> F:
    """Add the options of `run` and `submit` that describe a task."""
    for option in reversed(_SUBMIT):
        function = option(function)
    return function


def task_options(options: SubmitOptions) -> TaskOptions:
    """Return the options of a task as the Python API takes them."""
    return {
        "mem": options["mem"],
        "disk": options["disk"],
        "cpus": options["cpus"],
        "time": options["time"],
        "deadline": options["deadline"],
        "image": options["image"],
        "venv": options["venv"],
        "conda": options["conda"],
        "cwd": options["cwd"],
        "env_modules": options["env_modules"],
        "inputs": options["inputs"],
        "outputs": options["outputs"],
        "env": {name: value for file in options["env_files"] for name, value in file.items()} | dict(options["env"]),
        "attributes": dict(options["sets"]),
        "gpus": options["gpus"],
        "uses": dict(options["uses"]),
        "name": options["name"],
        "key": options["key"],
        "require": options["require"],
        "retries": options["retries"],
        "priority": options["priority"],
        "waits": not options["no_wait"],
        "after": options["after"],
        "after_any": options["after_any"],
        "after_ok": options["after_ok"],
        "after_each": options["after_each"],
        "notify": options["notify"],
    }
