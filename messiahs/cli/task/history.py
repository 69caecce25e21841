"""`messiahs history`: the tasks that have ended, where they ran, how long, and what they used."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Unpack, cast

import click

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.options import PlaceOptions, place_options
from messiahs.cli.output import local_time, print_document, print_table, print_text, result_of
from messiahs.cli.task.lines import command_text, duration_text
from messiahs.cli.task.modules import client_of
from messiahs.cli.task.totals import Together, by_array, failed_of, total_of, used_by
from messiahs.cli.task.whose import own_name
from messiahs.cli.times import past_time
from messiahs.client.connection import Document
from messiahs.core.model.texts import printable

_USED = ("RAN", "COST", "CPU", "MEMORY", "USER", "COMMAND")
_HEADER = ("ID", "STATE", "RESULT", "MODULE", "ENDED", *_USED)
_HEADER_OF_ARRAYS = ("ID", "TASKS", "FAILED", "ENDED", *_USED)


class HistoryOptions(PlaceOptions):
    """Options of `history`."""

    since: datetime
    user: str | None
    failed: bool
    arrays: bool


@click.command()
@place_options
@click.option(
    "--since", type=past_time, default="7d", metavar="TIME", help="Tasks that ended since 7d ago, or 2026-01-31 [7d]."
)
@click.option("--user", metavar="NAME", help="Whose tasks [your own; for root, those of all users].")
@click.option("--failed", is_flag=True, help="Show only tasks that ended without exit code 0.")
@click.option("--arrays", is_flag=True, help="Show each array on one line, with sums.")
def history(**options: Unpack[HistoryOptions]) -> None:
    """Show the tasks that have ended: where they ran, how long, and what their last attempts used.

    RAN is without suspensions, COST is RAN times the slots, CPU is the time on processors, and MEMORY the peak. What is
    not known is `-`. With --arrays, these are sums of the tasks that ended in that time, and the highest peak of one of
    them; --failed then shows the arrays in which a task failed.
    """
    seconds = (datetime.now(UTC) - options["since"]).total_seconds()
    user = _shown_user(options["user"])
    with client_of(options) as client:
        ended = cast("list[Document]", client.history(since=seconds, user=user))
    if options["arrays"]:
        _show_arrays([one for one in by_array(ended) if one.failed or not options["failed"]], options, user=user)
        return
    if options["failed"]:
        ended = [task for task in ended if exit_code_of(task)]
    if options["as_json"]:
        print_document({"tasks": ended})
    elif options["quiet"]:
        for document in ended:
            print_text(document["id"])
    else:
        show_history(ended, user=user)


def show_history(tasks: Sequence[Document], *, user: str | None = None) -> None:
    """Print a table of ended tasks, those of `user` (None: of all users), and what they have used together."""
    if tasks:
        print_table(_HEADER, [_row(task) for task in tasks])
    _show_total(tasks, user=user)


def _show_arrays(arrays: Sequence[Together], options: PlaceOptions, *, user: str | None) -> None:
    if options["as_json"]:
        print_document({"arrays": [one.document for one in arrays]})
    elif options["quiet"]:
        for one in arrays:
            print_text(one.id)
    else:
        if arrays:
            print_table(_HEADER_OF_ARRAYS, [_row_of_array(one) for one in arrays])
        _show_total([task for one in arrays for task in one.tasks], user=user)


def _show_total(tasks: Sequence[Document], *, user: str | None) -> None:
    if not tasks:
        print_text(printable(f"no task{f' of {user}' if user else ''} has ended in that time"))
        return
    total, failed = total_of(tasks), failed_of(tasks)
    ran, cost = (duration_text(each or 0.0) for each in (total.ran_s, total.cost_s))
    used = f"{ran} in all, cost {cost} of slots, and used {total.cpu_s or 0.0:.1f} s of processors"
    print_text(f"\n{len(tasks)} ended, {failed or 'none'} failed; they ran {used}")


def _shown_user(user: str | None) -> str | None:
    """Return whose tasks are shown: those of `user`, else one's own, and for root those of all (None)."""
    return user if user is not None or os.geteuid() == 0 else own_name()


def _row(task: Document) -> tuple[object, ...]:
    place, ended_at = task.get("executed_on") or "-", local_time(task["ended_at"])
    return (task["id"], task["state"], result_of(task), place, ended_at, *used_by(task).cells, *_whose(task))


def _row_of_array(one: Together) -> tuple[object, ...]:
    ended_at, used = local_time(one.last["ended_at"]), total_of(one.tasks)
    return (one.id, len(one.tasks), one.failed, ended_at, *used.cells, *_whose(one.first))


def _whose(task: Document) -> tuple[str, str]:
    return task.get("user") or "-", task.get("name") or command_text(task)
