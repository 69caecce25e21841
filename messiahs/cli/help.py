"""The help of `messiahs`: commands in two groups, each with its whole first sentence."""

import inspect
from collections.abc import Collection
from typing import Final

import click

_ENDING: Final = frozenset(("cancel", "clean", "down", "leave", "lend", "off", "remove", "restore", "revoke"))
"""Commands that end, suspend or forget something."""


class Commands(click.Group):
    """The command `messiahs`, whose help lists the commands of users, and then those of administrators."""

    def __init__(self, *, of_users: Collection[str]) -> None:
        super().__init__(
            name="messiahs",
            help="Pool machines across sites without giving up control.",
            no_args_is_help=True,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self._of_users = of_users

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command; its help, and that of all below it, is not cut to one line."""
        _keep_whole(cmd)
        super().add_command(cmd, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as the base class
        """Write the commands in the order in which they were added."""
        for title, is_of_users in (("Commands for users", True), ("Commands for administrators", False)):
            rows = [
                (name, command.get_short_help_str())
                for name, command in self.commands.items()
                if (name in self._of_users) is is_of_users and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def with_near_commands(error: click.exceptions.NoSuchCommand, root: click.Group) -> click.UsageError:
    """Return an error that also suggests commands of this name in groups, such as `task hold` for `hold`.

    It suggests none that ends, suspends or forgets something: nobody may have meant it.
    """
    if error.possibilities:
        error.possibilities[:] = [each for each in error.possibilities if each not in _ENDING]
    name, groups = error.command_name, (each for each in root.commands.values() if isinstance(each, click.Group))
    inside = [f"'{each.name} {name}'" for each in groups if name in each.commands and name not in _ENDING]
    also = f" Did you mean {' or '.join(inside)}?" if inside else ""
    return click.UsageError(f"{error.format_message()}{also}", ctx=error.ctx)


def without_far_names(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return an error that suggests only names as long as the unknown one with most of its letters, dashes aside."""
    if error.possibilities:
        from difflib import get_close_matches

        unknown = error.option_name.lstrip("-")
        names = {each.lstrip("-"): each for each in error.possibilities if len(each) == len(error.option_name)}
        error.possibilities[:] = sorted(names[near] for near in get_close_matches(unknown, names))
    return error


def _keep_whole(command: click.Command) -> None:
    if not command.short_help and command.help:
        # click cuts a sentence of its own making, and not this one.
        command.short_help = _first_sentence(command.help)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _keep_whole(each)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    sentence, end, _ = paragraph.partition(". ")
    return f"{sentence}{end.strip()}"
