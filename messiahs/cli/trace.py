"""`messiahs trace …`: record what modules receive and do, and replay it through the core."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON, MODULE, SIZE, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.client.locating import ModulePlace, locate_module, running_modules, searched_directory
from messiahs.client.module import ModuleClient
from messiahs.core.model.instants import SECOND
from messiahs.core.model.texts import printable, printable_lines
from messiahs.errors import ClientError

if TYPE_CHECKING:
    from messiahs.trace.format.segments import Segment
    from messiahs.trace.replay.replay import Difference
    from messiahs.trace.show.conversation import Conversation, Line

_DEFAULT_SIZE = "64MiB"
_SHOWN_DIFFERENCES = 10
_SHOWN_CHARACTERS = 400

_ALL = click.option("--all", "is_for_all", is_flag=True, help="All running modules under the state directory.")
_PATHS = click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))


@click.group()
def trace() -> None:
    """Record everything that a module receives and does, print it, and replay it."""


@trace.command()
@MODULE
@_ALL
@STATE
@JSON
@click.option("--size", type=SIZE, default=_DEFAULT_SIZE, show_default=True, help="Disk space for the recording.")
def start(*, module: str | None, is_for_all: bool, state: Path | None, as_json: bool, size: int) -> None:
    """Record until `trace stop`, also after a restart; the oldest part is removed when --size is reached.

    A trace contains command lines, environments and tickets: treat it as a secret. Only its owner can read its
    files.
    """
    _record(_places(module, state, is_for_all=is_for_all), size, as_json=as_json)


@trace.command()
@MODULE
@_ALL
@STATE
@JSON
def stop(*, module: str | None, is_for_all: bool, state: Path | None, as_json: bool) -> None:
    """Stop recording; the recorded trace stays."""
    _record(_places(module, state, is_for_all=is_for_all), None, as_json=as_json)


@trace.command()
@_PATHS
@STATE
@JSON
def replay(paths: tuple[Path, ...], *, state: Path | None, as_json: bool) -> int:
    """Replay traces through the core of this release and compare every action; exit with 1 if one differs.

    PATH is a segment file, or a folder searched for such files [the state directory]. Only the release that wrote a
    trace is certain to produce the same actions.
    """
    from messiahs.trace.replay.replay import replay as replay_segments
    from messiahs.trace.show.reader import read_segments, segment_files

    files = segment_files(paths or (searched_directory(state),))
    notes: list[str] = []
    done = replay_segments(_noted(segment, notes) for segment in read_segments(files))
    if as_json:
        print_document(
            {
                "segments": done.segments,
                "events": done.events,
                "actions": done.actions,
                "differences": [_facts(difference) for difference in done.differences],
                "notes": notes,
            }
        )
        return 1 if done.differences else 0
    for difference in done.differences[:_SHOWN_DIFFERENCES]:
        print_text(printable_lines(_difference_text(difference)))
    if len(done.differences) > _SHOWN_DIFFERENCES:
        print_text(f"... and {len(done.differences) - _SHOWN_DIFFERENCES} more; --json gives all of them")
    _show_notes(notes)
    print_text(f"{done.events:,} events, {done.actions:,} actions, {len(done.differences):,} differences")
    return 1 if done.differences else 0


@trace.command()
@_PATHS
@STATE
@JSON
@click.option("--task", metavar="ID", help="Only what concerns this task, its claims and its searches.")
@click.option("--vectors", "has_vectors", is_flag=True, help="Include status vectors and measurements.")
def show(paths: tuple[Path, ...], *, state: Path | None, as_json: bool, task: str | None, has_vectors: bool) -> None:
    """Print the messages between modules and their actions in order of time.

    PATH is a segment file, or a folder searched for such files [the state directory]. Times are those of each host's
    clock.
    """
    from messiahs.trace.show.conversation import Conversation
    from messiahs.trace.show.reader import segment_files

    conversation = Conversation(segment_files(paths or (searched_directory(state),)), has_vectors)
    notes: list[str] = []
    lines = conversation.lines(notes) if task is None else _story_of(task, conversation, notes)
    if as_json:
        print_document({"lines": [_line_facts(line) for line in lines], "notes": notes})
        return
    day = ""
    for line in lines:
        at = datetime.fromtimestamp(line.at_ns // SECOND).astimezone()
        if f"{at:%F}" != day:
            day = f"{at:%F}"
            print_text(f"{at:%F %Z}")
        print_text(f"{at:%T}.{line.at_ns % SECOND // 1000:06} {printable(line.text)}")
    _show_notes(notes)


@trace.command()
@_PATHS
@STATE
@click.option(
    "--into", "archive", type=click.Path(path_type=Path), default="trace.tar.gz", show_default=True, help="A new file."
)
def bundle(paths: tuple[Path, ...], *, state: Path | None, archive: Path) -> None:
    """Put traces into one archive; unpacked, it is a PATH for `show` and `replay`.

    It contains command lines, environments and tickets: treat it as a secret.
    """
    from messiahs.trace.show.reader import bundle_files, segment_files

    count = bundle_files(segment_files(paths or (searched_directory(state),)), archive)
    print_text(
        f"{archive}: {count} segments; it contains command lines, environments and tickets: treat it as a secret"
    )


def _story_of(task: str, conversation: "Conversation", notes: list[str]) -> "Iterator[Line]":
    from messiahs.trace.show.story import Story

    story = Story(task)
    story.learn(conversation.lines([]))
    if story.since_ns is None:
        raise ClientError(f"nothing in these traces names {task}")
    return story.concerning(conversation.lines(notes))


def _line_facts(line: "Line") -> dict[str, object]:
    at = datetime.fromtimestamp(line.at_ns // SECOND, UTC)
    sender, receiver = line.ends
    return {
        "at": f"{at:%FT%T}.{line.at_ns % SECOND // 1000:06}Z",
        "module": sender,
        "to": receiver,
        "kind": line.kind,
        "text": line.text,
    }


def _show_notes(notes: list[str]) -> None:
    for note in notes:
        print_text(f"messiahs: {note}", err=True)


def _places(module: str | None, state: Path | None, *, is_for_all: bool) -> tuple[ModulePlace, ...]:
    if is_for_all and module is not None:
        raise click.UsageError("--all and --module cannot be combined")
    return running_modules(searched_directory(state)) if is_for_all else (locate_module(module, state=state),)


def _record(places: tuple[ModulePlace, ...], size_bytes: int | None, *, as_json: bool) -> None:
    answers = {}
    problems = []
    for place in places:
        try:
            with ModuleClient(place.socket) as client:
                answers[place.module] = client.record(size_bytes)
        except ClientError as error:
            problems.append(f"{place.module}: {error}")
    if as_json:
        print_document({"modules": [{"name": name, **answer} for name, answer in answers.items()]})
    else:
        for name, answer in answers.items():
            state = "recording to" if answer["recording"] else "not recording; the trace is in"
            print_text(f"{name}: {state} {answer['folder']}")
    if problems:
        raise ClientError("\n".join(problems))


def _noted(segment: "Segment", notes: list[str]) -> "Segment":
    from messiahs import __version__
    from messiahs.config.installed_parts import why_not_as_recorded

    if segment.note:
        notes.append(f"{segment.name}: {segment.note}")
    if segment.head.release != __version__:
        notes.append(f"{segment.name}: written by release {segment.head.release}; this is release {__version__}")
    notes.extend(f"{segment.name}: {missing}" for missing in why_not_as_recorded(segment.head.policy.parts))
    return segment


def _facts(difference: "Difference") -> dict[str, object]:
    return {
        "segment": difference.segment,
        "record": difference.record,
        "subject": difference.subject,
        "expected": difference.expected,
        "found": difference.found,
    }


def _difference_text(difference: "Difference") -> str:
    lines = (
        f"{difference.segment}: record {difference.record}",
        f"    after     {difference.subject}",
        f"    expected  {difference.expected}",
        f"    found     {difference.found}",
    )
    return "\n".join(line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..." for line in lines)
