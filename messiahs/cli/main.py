"""The command `messiahs`: which words there are, and what its exit code says.

A command is loaded when it is named; to add one, add a line to `COMMANDS`.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from messiahs.errors import ClientError, MessiahsError

if TYPE_CHECKING:
    import click

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "messiahs.cli.task:run",
        "submit": "messiahs.cli.task:submit",
        "status": "messiahs.cli.task:status",
        "explain": "messiahs.cli.task:explain",
        "wait": "messiahs.cli.task:wait",
        "logs": "messiahs.cli.task:logs",
        "fetch": "messiahs.cli.task:fetch",
        "cancel": "messiahs.cli.task:cancel",
        "retry": "messiahs.cli.task:retry",
        "task": "messiahs.cli.task:task",
        "up": "messiahs.cli.up:up",
        "down": "messiahs.cli.up:down",
        "demo": "messiahs.cli.demo:demo",
        "module": "messiahs.cli.module:module",
        "policy": "messiahs.cli.policy:policy",
        "sim": "messiahs.cli.sim:sim",
        "trace": "messiahs.cli.trace:trace",
        "topology": "messiahs.cli.topology:topology",
        "version": "messiahs.cli.version:version",
    }
)
"""Every first word, and where its click command is."""

_INTERRUPTED_EXIT = 130
_PIPE_CLOSED_EXIT = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; a user's mistake is a message on stderr, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["version"], ["--version"]):
        # Even click is too much for one line.
        from messiahs import __version__

        sys.stdout.write(f"messiahs {__version__}\n")
        return 0
    try:
        return _invoke(words)
    except MessiahsError as error:
        sys.stderr.write(f"messiahs: {error}\n")
        return error.code if isinstance(error, ClientError) else 1
    except BrokenPipeError:
        # Whoever read our output has enough; what is still in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED_EXIT
    except KeyboardInterrupt:
        return _INTERRUPTED_EXIT


def _invoke(words: list[str]) -> int:
    import click

    try:
        code = _root(words).main(args=words, prog_name="messiahs", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _INTERRUPTED_EXIT
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _root(words: list[str]) -> "click.Group":
    import click

    root = click.Group(
        name="messiahs", help="Pool machines across sites without giving up control.", no_args_is_help=True
    )
    # Only --help and a word that does not exist need all of them.
    wanted = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        root.add_command(getattr(import_module(module), attribute), name)
    return root


if __name__ == "__main__":
    sys.exit(main())
