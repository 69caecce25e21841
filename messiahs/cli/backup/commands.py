"""`messiahs backup` and `messiahs restore`."""

import os
from pathlib import Path

import click

from messiahs.cli.options import JSON, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.client.locating import (
    ModulePlace,
    check_permission,
    known_modules,
    locate_module,
    searched_directory,
    state_directory,
    with_settings,
)
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, explained


@click.command()
@click.option(
    "--module", "module", metavar="NAME", help="The module to store, or FEDERATION/NAME [env: MESSIAHS_MODULE]."
)
@click.option("--all", "takes_all", is_flag=True, help="All modules of a federation under the state directory.")
@click.option("--federation", metavar="NAME", help="With --all: which federation, if there are several.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write; it must not exist.")
@STATE
@JSON
def backup(
    *, module: str | None, takes_all: bool, federation: str | None, out: Path, state: Path | None, as_json: bool
) -> None:
    """Store modules in one file, while they run: rows, settings, policy, certificates, keys, inputs and results.

    The file is a secret: it contains the keys. Only its owner can read it. It contains neither logs nor traces, nor
    what running tasks have written so far.
    """
    from messiahs.cli.backup.making import make

    if takes_all and module is not None:
        raise click.UsageError("name one module with --module, or --all, not both")
    if not takes_all and module is None and not os.environ.get("MESSIAHS_MODULE"):
        raise click.UsageError("name one module with --module or MESSIAHS_MODULE, or --all")
    places = (
        _all(searched_directory(state), federation)
        if takes_all
        else with_settings([locate_module(module, state=state)])
    )
    try:
        made = make(places, out)
    except OSError as error:
        raise ClientError(f"no backup is made: {explained(error)}") from error
    names = [place.module for place in places]
    if as_json:
        print_document(
            {"file": str(out), "modules": names, "bytes": made.size_bytes, "files": made.files, "tasks": made.tasks}
        )
        return
    size = f"{made.size_bytes / (1 << 20):.1f} MiB in {made.files} files; submissions that have not ended: {made.tasks}"
    print_text(f"{out}: {', '.join(names)} of {places[0].federation}, {size}; it contains keys: keep it secret")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--module", "module", metavar="NAME", help="Restore this module of FILE alone.")
@click.option("--replace", "replaces", is_flag=True, help="Put it in the place of stopped modules of the same names.")
@click.option(
    "--same-site", "is_same_site", is_flag=True, help="FILE is of this site, from before it got a new root; tls/ stays."
)
@STATE
@JSON
def restore(
    *, file: Path, module: str | None, replaces: bool, is_same_site: bool, state: Path | None, as_json: bool
) -> None:
    """Restore the modules in FILE, which `messiahs backup` made; they can then be started.

    Each continues in a new epoch, as after any older copy of its state: tasks that ended after the backup may run
    again, and tasks that were submitted after it are unknown. If anything in FILE is wrong, nothing is changed.
    """
    from messiahs.cli.backup.restoring import restore as restore_from

    done = restore_from(file, state_directory(state), replaces=replaces, module=module, is_same_site=is_same_site)
    contents = done.contents
    if as_json:
        names = {"federation": contents.federation, "modules": contents.modules, "made_at": contents.made_at}
        print_document({**names, "files": len(contents.files), "notes": done.notes})
        return
    print_text(printable(f"{', '.join(contents.modules)} of {contents.federation}, as of {contents.made_at}"))
    for note in done.notes:
        print_text(printable(note))


def _all(state: Path, federation: str | None) -> tuple[ModulePlace, ...]:
    places = with_settings(place for place in known_modules(state) if federation in (None, place.federation))
    if not places:
        check_permission(state)
        raise ClientError(f"no module under {state}" + (f" is of `{federation}`" if federation else ""))
    federations = sorted({place.federation for place in places})
    if len(federations) > 1:
        raise ClientError(f"there are several federations: add `--federation` with one of {', '.join(federations)}")
    return places
