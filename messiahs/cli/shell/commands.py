"""`messiahs completion` and `messiahs man`."""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

import click

from messiahs import __version__
from messiahs.cli.output import print_text
from messiahs.cli.shell.completing import SHELLS, answer_shell
from messiahs.errors import ClientError, explained

_ALWAYS: Final = frozenset((Path("/usr/share/man"), Path("/usr/local/share/man")))
"""Where `man` looks whatever the path of programs is."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print what makes a shell complete commands, options, files, modules and ids of tasks.

    \b
    bash: add to ~/.bashrc:  eval "$(messiahs completion bash)"
    zsh:  add to ~/.zshrc:   eval "$(messiahs completion zsh)"
    fish: messiahs completion fish > ~/.config/fish/completions/messiahs.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    root = context.find_root().command
    assert isinstance(root, click.Group)
    return answer_shell(root, f"{shell}_source")


@click.command()
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Target folder [share/man/man1 beside the bin that has this program].",
)
@click.pass_context
def man(context: click.Context, *, into: Path | None) -> None:
    """Write the man pages of all commands, such as those that `man messiahs` and `man messiahs-run` show.

    It says how `man` finds them where it would not.
    """
    from click_man.core import write_man_pages

    folder = into or Path(sys.prefix) / "share" / "man" / "man1"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_man_pages("messiahs", context.find_root().command, version=__version__, target_dir=str(folder))
    except OSError as error:
        raise ClientError(f"{explained(error)}; --into DIR writes the pages elsewhere") from error
    print_text(f"{len(list(folder.glob('messiahs*.1')))} pages are in {folder}{how_man_finds(folder)}")


def how_man_finds(folder: Path) -> str:
    """Return how `man` finds the pages in a folder, unless it does; it looks beside the folders of programs, too."""
    folder = folder.absolute()
    if folder.name != "man1":
        return (
            f"; `man {shlex.quote(str(folder / 'messiahs.1'))}` shows one, and by name `man` finds those in man1 alone"
        )
    named = os.environ.get("MANPATH", "").split(":")
    searched = {Path(each) for each in named if each}
    if "" in named:
        programs = [Path(each) for each in os.environ.get("PATH", "").split(":") if each]
        searched |= {each.parent / "share" / "man" for each in programs} | _ALWAYS
    if folder.parent in searched:
        return ""
    return f'; `man` finds them after `export MANPATH="$MANPATH:{folder.parent}"`'
