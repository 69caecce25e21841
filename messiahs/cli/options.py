"""Options that several commands share, and the values that they take."""

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from messiahs.client.module import Submission
from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.errors import MessiahsError

F = TypeVar("F", bound=Callable[..., object])


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
    env: tuple[tuple[str, str], ...]
    name: str
    require: str
    retries: int
    deadline: int | None
    no_wait: bool


def _told(read: Callable[[str], int]) -> Callable[[str], int]:
    def value(text: str) -> int:
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


def _array(text: str) -> int:
    first, dash, last = text.partition("-")
    if not dash or not last.isdecimal() or not first.isdecimal():
        raise click.BadParameter(f"`{text}` is no range such as 1-100")
    if int(first) != 1 or int(last) < 1:
        raise click.BadParameter(f"an array begins with member 1; write 1-{max(1, int(last))}")
    return int(last)


STATE = click.option("--state", type=click.Path(path_type=Path), help="The state directory [env: MESSIAHS_STATE].")
MODULE = click.option("--module", metavar="NAME", help="The module to ask [env: MESSIAHS_MODULE].")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print ids alone.")
ARRAY = click.option("--array", type=_array, metavar="1-N", help="Submit N tasks, members 1 to N.")
TOPOLOGY = click.argument("topology_file", metavar="TOPOLOGY", type=click.Path(path_type=Path))

_PLACE = (MODULE, STATE, JSON, QUIET)
_SUBMIT = (
    click.option("--mem", type=_told(size_bytes), metavar="SIZE", help="Memory that one task needs: 8GiB, 500MB."),
    click.option("--disk", type=_told(size_bytes), metavar="SIZE", help="Disk that one task needs."),
    click.option("--cpus", type=click.IntRange(min=1), help="Slots that one task takes [1]."),
    click.option(
        "--time", type=_told(duration_seconds), metavar="TIME", help="Longest run time, enforced: 90s, 15min, 2d."
    ),
    click.option("--env", type=_assignment, multiple=True, metavar="NAME=VALUE", help="Set a variable for the task."),
    click.option("--name", default="", help="A name for people."),
    click.option("--require", default="", metavar="PREDICATE", help="What the machine must satisfy: '$speed > 400'."),
    click.option("--retries", type=click.IntRange(min=0), default=0, help="Start again so often after a failure [0]."),
    click.option("--deadline", type=_told(duration_seconds), metavar="TIME", help="Deny it if not placed by then."),
    click.option("--no-wait", is_flag=True, help="Deny it rather than keep it waiting for room."),
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


def submission_of(command: tuple[str, ...], options: SubmitOptions, *, members: int = 0) -> Submission:
    """Give what the options describe; what was not said is not in the TDV."""
    wanted = {
        "mem": options["mem"],
        "disk": options["disk"],
        "cpus": options["cpus"],
        "est_time": options["time"],
    }
    return Submission(
        argv=command,
        env=dict(options["env"]),
        tdv={name: value for name, value in wanted.items() if value is not None},
        requirement=options["require"],
        members=members,
        name=options["name"],
        retries=options["retries"],
        waits=not options["no_wait"],
        deadline_seconds=options["deadline"],
    )
