"""`messiahs history`: the tasks that have ended, where they ran, how long, and what they used."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Unpack, cast

import click

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.options import PlaceOptions, place_options
from messiahs.cli.output import local_time, print_document, print_table, print_text, result_of
from messiahs.cli.task.lines import command_text, duration_text, ran_seconds
from messiahs.cli.task.modules import client_of
from messiahs.cli.task.whose import own_name
from messiahs.cli.times import past_time
from messiahs.client.connection import Document
from messiahs.core.model.texts import printable

_HEADER = ("ID", "STATE", "RESULT", "MODULE", "ENDED", "RAN", "COST", "CPU", "MEMORY", "USER", "COMMAND")
_MIB = 1 << 20


@click.command()
@place_options
@click.option(
    "--since", type=past_time, default="7d", metavar="TIME", help="Tasks that ended since 7d ago, or 2026-01-31 [7d]."
)
@click.option("--user", metavar="NAME", help="Whose tasks [your own; for root, those of all users].")
@click.option("--failed", is_flag=True, help="Show only tasks that ended without exit code 0.")
def history(*, since: datetime, user: str | None, failed: bool, **options: Unpack[PlaceOptions]) -> None:
    """Show the tasks that have ended: where they ran, how long, and what their last attempts used.

    RAN is without suspensions, COST is RAN times the slots, CPU is the time on processors, and MEMORY the peak. What is
    not known is `-`.
    """
    seconds = (datetime.now(UTC) - since).total_seconds()
    with client_of(options) as client:
        ended = cast("list[Document]", client.history(since=seconds, user=_shown_user(user)))
    if failed:
        ended = [task for task in ended if exit_code_of(task)]
    if options["as_json"]:
        print_document({"tasks": ended})
    elif options["quiet"]:
        for document in ended:
            print_text(document["id"])
    else:
        show_history(ended, user=_shown_user(user))


def show_history(tasks: Sequence[Document], *, user: str | None = None) -> None:
    """Print a table of ended tasks, those of `user` (None: of all users), and what they have used together."""
    if not tasks:
        print_text(printable(f"no task{f' of {user}' if user else ''} has ended in that time"))
        return
    print_table(_HEADER, [_row(task) for task in tasks])
    failed = sum(exit_code_of(task) != 0 for task in tasks)
    ran, cost, cpu = (sum(filter(None, map(of, tasks))) for of in (_ran_seconds, _cost_seconds, _cpu_seconds))
    used = f"{duration_text(ran)} in all, cost {duration_text(cost)} of slots, and used {cpu:.1f} s of processors"
    print_text(f"\n{len(tasks)} ended, {failed or 'none'} failed; they ran {used}")


def _shown_user(user: str | None) -> str | None:
    """Return whose tasks are shown: those of `user`, else one's own, and for root those of all (None)."""
    return user if user is not None or os.geteuid() == 0 else own_name()


def _row(task: Document) -> tuple[object, ...]:
    cpu, memory = _cpu_seconds(task), (task.get("usage") or {}).get("peak_memory_bytes")
    return (
        task["id"],
        task["state"],
        result_of(task),
        task.get("executed_on") or "-",
        local_time(task["ended_at"]),
        *("-" if each is None else duration_text(each) for each in (_ran_seconds(task), _cost_seconds(task))),
        "-" if cpu is None else f"{cpu:.1f} s",
        "-" if memory is None else f"{memory / _MIB:.1f} MiB",
        task.get("user") or "-",
        task.get("name") or command_text(task),
    )


def _ran_seconds(task: Document) -> float | None:
    return ran_seconds(task, datetime.fromisoformat(task["ended_at"]))


def _cost_seconds(task: Document) -> float | None:
    """Return for how long the task had slots, times their number, as the ledger counts."""
    ran = _ran_seconds(task)
    return None if ran is None else ran * int(task["tdv"]["cpus"])


def _cpu_seconds(task: Document) -> float | None:
    found: float | None = (task.get("usage") or {}).get("cpu_s")
    return found
