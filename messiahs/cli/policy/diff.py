"""`messiahs policy diff`: list recorded decisions that another policy would change."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON
from messiahs.cli.output import print_document, print_text
from messiahs.cli.policy.problems import problems_as_json
from messiahs.core.model.instants import SECOND

if TYPE_CHECKING:
    from messiahs.trace.replay.comparison import Change, Comparison

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@click.option(
    "--replay", "paths", metavar="TRACE", multiple=True, required=True, type=_FILE, help="A segment file, or a folder."
)
@JSON
def diff(old: Path, new: Path, *, paths: tuple[Path, ...], as_json: bool) -> int:
    """Ask OLD and NEW every question that a module's policy was asked during TRACE; exit with 1 if an answer differs.

    The recorded decisions continue to apply: the consequences of a different answer are not simulated.
    """
    from messiahs.config.policies import policy_source
    from messiahs.core.interface.policies import Timeouts
    from messiahs.trace.replay.comparison import compare
    from messiahs.trace.show.reader import read_segments, segment_files

    # Read before the traces, so that a mistake is reported at once.
    with problems_as_json(as_json=as_json):
        texts = (policy_source(old, timeouts=Timeouts()), policy_source(new, timeouts=Timeouts()))
        for text in texts:
            text.policy()
    done = compare(read_segments(segment_files(paths)), texts)
    if as_json:
        print_document(_document(done))
    else:
        _show(done)
    return 1 if done.changes else 0


def _document(done: "Comparison") -> dict[str, object]:
    return {
        "changes": [_facts(change) for change in done.changes],
        "counts": dict(Counter(change.kind for change in done.changes)),
        "asked": done.asked,
        "events": done.events,
        "segments": done.segments,
        "notes": done.notes,
    }


def _facts(change: "Change") -> dict[str, object]:
    return {
        "first_at": _time(change.first_at_ns),
        "last_at": _time(change.last_at_ns),
        "count": change.count,
        "module": change.module,
        "about": change.about,
        "question": change.question,
        "old": change.old,
        "new": change.new,
    }


def _show(done: "Comparison") -> None:
    for change in done.changes:
        at = datetime.fromtimestamp(change.first_at_ns // SECOND).astimezone()
        about = f" ({change.about})" if change.about else ""
        times = f", {change.count} times" if change.count > 1 else ""
        print_text(
            f"{at:%F %T}.{change.first_at_ns % SECOND // 1000:06} {change.module}: {change.question}{about}{times}"
        )
        print_text(f"    old  {change.old}")
        print_text(f"    new  {change.new}")
    for note in done.notes:
        print_text(f"messiahs: {note}", err=True)
    counts = Counter(change.kind for change in done.changes)
    by_kind = f" ({', '.join(f'{kind} {count}' for kind, count in counts.items())})" if counts else ""
    print_text(f"{len(done.changes):,} decisions would change{by_kind}; {done.asked:,} were compared")


def _time(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns // SECOND, UTC):%FT%T}.{at_ns % SECOND // 1000:06}Z"
