"""What every command prints alike: one JSON document, or lines for people."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from messiahs.client.connection import Document
from messiahs.core.interface.causes import OUTPUT_CAUSES
from messiahs.core.model.texts import printable, printable_json

SCHEMA = 1
"""The number of the shape of all JSON documents; it changes when one of them does so incompatibly."""


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document; control characters in its texts are escaped."""
    click.echo(printable_json(json.dumps({"schema": SCHEMA, **document}, ensure_ascii=False)))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns under a header; nothing is ever cut off, since the output may go to a program."""
    lines = [[printable(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def state_of(task: Document) -> str:
    """Give the state of a task as people want it: what an executing one does at the moment."""
    state, substate = str(task["state"]), task.get("substate")
    return f"{substate}" if state == "executing" and substate else state


def result_of(task: Document) -> str:
    """Give how a task ended, in a word: the cause if we know one, else its exit code or its signal.

    A task that lacks outputs has both.
    """
    if task.get("cause") in OUTPUT_CAUSES and task.get("exit_code") is not None:
        return f"{task['exit_code']} ({task['cause']})"
    if task.get("cause"):
        return str(task["cause"])
    if task.get("exit_code") is not None:
        return str(task["exit_code"])
    return f"signal {task['signal']}" if task.get("signal") is not None else "-"


def reason_lines(reasons: Iterable[Document], *, depth: int = 0, whole: bool = False) -> Iterator[str]:
    """Give one line per denial, each hop's own denials indented below it.

    With `whole` a denial by the own policy is followed by the comparisons that were against it.
    """
    for reason in reasons:
        told = ": ".join(str(reason[part]) for part in ("rule", "text") if reason.get(part))
        yield "  " * depth + printable(f"{reason.get('module')}: {reason.get('code')}{f' ({told})' if told else ''}")
        if whole and reason.get("why"):
            yield "  " * depth + printable(f"  because {reason['why']}")
        yield from reason_lines(reason.get("hops", ()), depth=depth + 1, whole=whole)
