"""`messiahs clean`: ended tasks are forgotten before their retention is over."""

from typing import Unpack

import click

from messiahs.cli.options import DURATION, PlaceOptions, place_options
from messiahs.cli.output import print_document, print_text
from messiahs.cli.shell.completing import task_ids
from messiahs.cli.task.modules import client_of
from messiahs.client.cleaning import Cleaned
from messiahs.core.model.counts import counted
from messiahs.core.model.texts import printable

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1_024


@click.command()
@place_options
@click.option("--older-than", type=DURATION, metavar="TIME", help="All your own tasks that ended TIME ago or earlier.")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=task_ids)
def clean(ids: tuple[str, ...], *, older_than: int | None, **options: Unpack[PlaceOptions]) -> int:
    """Forget ended tasks or arrays now, with their outputs, instead of after the retention (7 days).

    Only the user of a task may do this, and root and the module's own user. A task that has not ended is kept, and one
    on which another one depends that has not; the exit code is 1 if it was named. Nothing brings back what is
    forgotten.
    """
    if bool(ids) == (older_than is not None):
        raise click.UsageError("name tasks, or say which with --older-than (0s: all of yours that have ended)")
    with client_of(options) as client:
        cleaned = client.clean(*ids, older_than=older_than)
    for text in cleaned["kept"].values():
        print_text(printable(f"messiahs: {text}"), err=True)
    if options["as_json"]:
        print_document(dict(cleaned))
    elif options["quiet"]:
        for name in cleaned["ids"]:
            print_text(name)
    else:
        print_text(cleaned_text(cleaned))
    return 1 if ids and cleaned["kept"] else 0


def cleaned_text(cleaned: Cleaned) -> str:
    """Return how many tasks were forgotten, and how much disk and memory they took, as far as that is known."""
    if not cleaned["tasks"]:
        return "nothing forgotten"
    sizes = (("disk", cleaned["bytes"]), ("memory", cleaned["memory_bytes"]))
    freed = " and ".join(f"{size_text(size_bytes)} of {what}" for what, size_bytes in sizes if size_bytes)
    return f"{counted(cleaned['tasks'], 'task')} forgotten" + (f", {freed} freed" if freed else "")


def size_text(size_bytes: int) -> str:
    """Return a size for people."""
    amount, unit = float(size_bytes), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} B"
