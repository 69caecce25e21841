"""`messiahs policy fmt`: write policy files and their tests in canonical form."""

import difflib
import stat
from pathlib import Path

import click

from messiahs.cli.output import print_text
from messiahs.cli.standard_input import standard_input
from messiahs.errors import ClientError, PolicyError

_STDIN = Path("-")
_TESTS = ".policytest"


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--check", "is_check", is_flag=True, help="Change nothing; print the differences and exit with 1 if any.")
def fmt(files: tuple[Path, ...], *, is_check: bool) -> int:
    """Write every FILE in canonical form, keeping comments. Without FILE, or for `-`, formats stdin to stdout.

    A file named *.policytest contains tests; stdin does if it has a test. Every other file is a policy.

    An invalid file is left unchanged: its problems are printed, and the exit code is 1.
    """
    results = [_format(file, is_check=is_check) for file in files or (_STDIN,)]
    return max(results)


def _format(file: Path, *, is_check: bool) -> int:
    from messiahs.config.policies import policy_text
    from messiahs.language.policytest.formatting import are_trials, format_trials
    from messiahs.language.syntax.formatting import format_policy

    name = "<stdin>" if file == _STDIN else str(file)
    try:
        text = standard_input() if file == _STDIN else policy_text(file)
        is_test = are_trials(text) if file == _STDIN else file.suffix == _TESTS
        written = format_trials(text, file=name) if is_test else format_policy(text, file=name)
    except PolicyError as error:
        print_text(str(error), err=True)
        return 1
    if is_check:
        return _print_difference(name, text, written)
    if file == _STDIN:
        click.echo(written.encode(), nl=False)  # noqa: TID251 - this is the content of a file
    elif written != text:
        _replace(file, written)
        print_text(f"{file}: formatted")
    return 0


def _print_difference(name: str, text: str, written: str) -> int:
    if written == text:
        return 0
    before, after = text.splitlines(keepends=True), written.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, name, f"{name} (formatted)"):
        print_text(line if line.endswith("\n") else f"{line}\n\\ No newline at the end\n", nl=False)
    return 1


def _replace(file: Path, text: str) -> None:
    """Replace a file atomically, keeping its mode; a link keeps pointing to it."""
    from messiahs.config.whole_files import write_whole

    target = file.resolve()
    try:
        write_whole(target, text.encode(), mode=stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        raise ClientError(f"{file}: cannot be written: {error.strerror}") from error
