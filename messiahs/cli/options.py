"""Options that several commands share, and the values that they take."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from messiahs.cli.members import array_range, each_line
from messiahs.client.inputs import PLACEHOLDER, Source, source_of
from messiahs.client.names import checked_name
from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.errors import MessiahsError

F = TypeVar("F", bound=Callable[..., object])
V = TypeVar("V")

_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class PlaceOptions(TypedDict):
    """Which module is asked, and how its answer is printed."""

    module: str | None
    state: Path | None
    as_json: bool
    quiet: bool


class SubmitOptions(PlaceOptions):
    """What `run` and `submit` take."""

    mem: int | None
    disk: int | None
    cpus: int | None
    time: int | None
    inputs: tuple[Source, ...]
    outputs: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    sets: tuple[tuple[str, int | str], ...]
    name: str
    key: str
    require: str
    retries: int
    deadline: int | None
    no_wait: bool


def _told(read: Callable[[str], V]) -> Callable[[str], V]:
    def value(text: str) -> V:
        try:
            return read(text)
        except MessiahsError as error:
            raise click.BadParameter(str(error)) from error

    value.__name__ = "quantity"
    return value


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"`{text}` is no NAME=VALUE")
    return name, value


def _attribute(text: str) -> tuple[str, int | str]:
    """Read `k=v`, where v is an integer or else a string, or `k:=LITERAL` of the predicate language."""
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name.removesuffix(":")):
        raise click.BadParameter(f"`{text}` is no NAME=VALUE or NAME:=LITERAL")
    if not name.endswith(":"):
        return name, int(value) if _INTEGER.fullmatch(value) else value
    return name[:-1], int(value) if _INTEGER.fullmatch(value) else _string(text, value)


def _string(text: str, literal: str) -> str:
    from messiahs.errors import PredicateError
    from messiahs.language.predicate.parsing import parse_expression
    from messiahs.language.predicate.syntax import Comparison

    try:
        read = parse_expression(f"$value eq {literal}")
    except PredicateError as error:
        raise click.BadParameter(f"`{text}`: {error.message}") from error
    if not isinstance(read, Comparison) or not isinstance(read.right, str):
        raise click.BadParameter(f'`{text}`: a literal is an integer or a string in quotes, as in NAME:="5"')
    return read.right


def _output(text: str) -> str:
    # What `{}` will be is not known yet; every member's name is checked when it is.
    plain = _told(checked_name)(text)
    return text if PLACEHOLDER in text else plain


SIZE = _told(size_bytes)
"""A type of options: a size in bytes, such as 64MiB."""
STATE = click.option("--state", type=click.Path(path_type=Path), help="The state directory [env: MESSIAHS_STATE].")
MODULE = click.option("--module", metavar="NAME", help="The module to ask [env: MESSIAHS_MODULE].")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print ids alone.")
ARRAY = click.option("--array", type=array_range, metavar="A-B", help="Submit a task for each number; it is {}.")
EACH_LINE = click.option(
    "--each-line", type=each_line, metavar="FILE", help="Submit a task for each line of FILE (-: stdin); it is {}."
)
TOPOLOGY = click.argument("topology_file", metavar="TOPOLOGY", type=click.Path(path_type=Path))

_PLACE = (MODULE, STATE, JSON, QUIET)
_SUBMIT = (
    click.option("--mem", type=SIZE, metavar="SIZE", help="Memory that one task needs: 8GiB, 500MB."),
    click.option("--disk", type=SIZE, metavar="SIZE", help="Disk that one task needs."),
    click.option("--cpus", type=click.IntRange(min=1), help="Slots that one task takes [1]."),
    click.option(
        "--time", type=_told(duration_seconds), metavar="TIME", help="Longest run time, enforced: 90s, 15min, 2d."
    ),
    click.option(
        "--input",
        "inputs",
        type=source_of,
        multiple=True,
        metavar="SRC[:DST]",
        help="A file or folder for the working directory, there called DST [its own name].",
    ),
    click.option(
        "--output",
        "outputs",
        type=_output,
        multiple=True,
        metavar="NAME",
        help="A file or folder that the task leaves in its working directory, to be brought home.",
    ),
    click.option("--env", type=_assignment, multiple=True, metavar="NAME=VALUE", help="Set a variable for the task."),
    click.option(
        "--set", "sets", type=_attribute, multiple=True, metavar="NAME=VALUE", help="State a further attribute."
    ),
    click.option("--name", default="", help="A name for people."),
    click.option("--require", default="", metavar="PREDICATE", help="What the machine must satisfy: '$speed > 400'."),
    click.option("--retries", type=click.IntRange(min=0), default=0, help="Start again so often after a failure [0]."),
    click.option("--deadline", type=_told(duration_seconds), metavar="TIME", help="Deny it if not placed by then."),
    click.option("--no-wait", is_flag=True, help="Deny it rather than keep it waiting for room."),
    click.option("--key", default="", metavar="TEXT", help="Submits with the same key of your own are one."),
    *_PLACE,
)


def place_options(function: F) -> F:
    """Add the options that choose a module and a form of output."""
    for option in reversed(_PLACE):
        function = option(function)
    return function


def submit_options(function: F) -> F:
    """Add the options of `run` and `submit`."""
    for option in reversed(_SUBMIT):
        function = option(function)
    return function
