"""The command `messiahs`: its subcommands and exit codes.

A command is loaded when it is named; to add one, add a line to one of the tables.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import StringIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from messiahs.cli.shell import COMPLETE_VARIABLE
from messiahs.errors import ClientError, MessiahsError, explained

if TYPE_CHECKING:
    import click

FOR_USERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "messiahs.cli.task.commands:run",
        "submit": "messiahs.cli.task.commands:submit",
        "plan": "messiahs.cli.task.planning:plan",
        "status": "messiahs.cli.task.listing:status",
        "explain": "messiahs.cli.task.commands:explain",
        "history": "messiahs.cli.task.history:history",
        "wait": "messiahs.cli.task.commands:wait",
        "logs": "messiahs.cli.task.commands:logs",
        "fetch": "messiahs.cli.task.commands:fetch",
        "cancel": "messiahs.cli.task.commands:cancel",
        "retry": "messiahs.cli.task.commands:retry",
        "clean": "messiahs.cli.task.clean:clean",
        "task": "messiahs.cli.task.commands:task",
        "lend": "messiahs.cli.lending:lend",
        "accounting": "messiahs.cli.accounting:accounting",
        "demo": "messiahs.cli.demo.commands:demo",
        "completion": "messiahs.cli.shell.commands:completion",
        "man": "messiahs.cli.shell.commands:man",
        "version": "messiahs.cli.version:version",
    }
)
"""The subcommands of users, and the location of the click command of each."""
FOR_ADMINISTRATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "up": "messiahs.cli.federation.up:up",
        "down": "messiahs.cli.federation.up:down",
        "doctor": "messiahs.cli.doctor.commands:doctor",
        "module": "messiahs.cli.module.commands:module",
        "demand": "messiahs.cli.demand:demand",
        "join": "messiahs.cli.join:join",
        "audit": "messiahs.cli.audit:audit",
        "backup": "messiahs.cli.backup.commands:backup",
        "restore": "messiahs.cli.backup.commands:restore",
        "neighbor": "messiahs.cli.neighbor:neighbor",
        "certificate": "messiahs.cli.certificate.commands:certificate",
        "policy": "messiahs.cli.policy.commands:policy",
        "sim": "messiahs.cli.sim.commands:sim",
        "trace": "messiahs.cli.trace:trace",
        "topology": "messiahs.cli.topology.commands:topology",
    }
)
"""Those of administrators."""
COMMANDS: Final[Mapping[str, str]] = MappingProxyType({**FOR_USERS, **FOR_ADMINISTRATORS})

_INTERRUPTED_EXIT = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake prints a message on stderr, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["version"], ["--version"]):
        # Importing click takes longer than printing one line.
        from messiahs import __version__

        sys.stdout.write(f"messiahs {__version__}\n")
        return 0
    try:
        code = _code_of(words)
        sys.stdout.flush()
    except OSError as error:
        return _failed(error)
    except KeyboardInterrupt:
        # The terminal has printed ^C.
        sys.stderr.write("\n")
        return _INTERRUPTED_EXIT
    return code


def _code_of(words: list[str]) -> int:
    import click

    if request := os.environ.get(COMPLETE_VARIABLE):
        # A shell asks what may follow.
        from messiahs.cli.shell.completing import answer_shell, words_of_the_line

        return answer_shell(_root(words_of_the_line()), request)
    try:
        # click's `main` would treat a broken pipe as an error of this program.
        root = _root(words)
        with root.make_context("messiahs", words) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            from messiahs.cli.help import without_far_names

            without_far_names(error)
        if isinstance(error, click.exceptions.NoSuchCommand):
            from messiahs.cli.help import with_near_commands

            error = with_near_commands(error, root)
        from messiahs.core.model.texts import printable_lines

        # It may quote a file or a word from elsewhere.
        shown = StringIO()
        error.show(shown)
        sys.stderr.write(printable_lines(shown.getvalue().expandtabs(4)))
        return error.exit_code
    except MessiahsError as error:
        from messiahs.core.model.texts import printable_lines

        sys.stderr.write(f"messiahs: {printable_lines(str(error))}\n")
        return error.code if isinstance(error, ClientError) else 1
    except click.Abort:
        return _INTERRUPTED_EXIT
    return code if isinstance(code, int) else 0


def _failed(error: OSError) -> int:
    """Print an error of the operating system; a broken pipe only sets the exit code."""
    from messiahs.cli.exit_codes import OUTPUT_LOST
    from messiahs.core.model.texts import printable_lines

    is_unread = isinstance(error, BrokenPipeError)
    with suppress(OSError):
        sys.stderr.write("" if is_unread else f"messiahs: {printable_lines(explained(error))}\n")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Buffered output must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return OUTPUT_LOST if is_unread else 1


def _root(words: list[str]) -> "click.Group":
    from messiahs.cli.help import Commands

    root = Commands(of_users=FOR_USERS)
    # Only --help, an unknown word and the man pages need all subcommands.
    wanted = [words[0]] if words and words[0] in COMMANDS.keys() - {"man"} else list(COMMANDS)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        root.add_command(getattr(import_module(module), attribute), name)
    return root


if __name__ == "__main__":
    sys.exit(main())
