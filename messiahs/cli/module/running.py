"""`messiahs module run`: one module in production, from a topology file, from a token, or as it ran last."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

import click

from messiahs.cli.options import SOCKETS, STATE
from messiahs.cli.output import print_text
from messiahs.client.locating import state_directory
from messiahs.errors import ClientError, MessiahsError

_FILE = click.Path(path_type=Path)
_NEAR = 0.8
"""Keys at least this alike (difflib) are taken for mistyped: `slot` is near `slots`, `gpus` is not near `cpus`."""


class _RunOptions(TypedDict):
    topology_file: Path | None
    join: str | None
    token: Path | None
    listen: str
    machine: str | None
    policy: Path | None
    sockets: Path | None
    state: Path | None


@click.command("run")
@click.argument("name")
@click.option("--topology", "topology_file", type=_FILE, help="The topology file.")
@click.option("--join", metavar="HOST:PORT", help="Join the module at this address (with --token).")
@click.option("--token", type=_FILE, help="The file with the token for --join (`messiahs join token`).")
@click.option(
    "--listen", default="", metavar="HOST:PORT", help="Where it listens; else nobody can dial it (with --join)."
)
@click.option("--machine", metavar="KEY=VALUE,…", help="It has a machine, measured but for these keys (with --join).")
@click.option("--policy", type=_FILE, help="Its policy file (with --join).")
@SOCKETS
@STATE
def run_module(name: str, **options: Unpack[_RunOptions]) -> None:
    """Run the module NAME here until it receives SIGTERM or Ctrl-C.

    With --topology, it is the one of the file, at its host and port. With --join, it becomes a child of a running
    module, or its sibling if the token is for one: its key is made here and never leaves, the module that it joins has
    its certificate signed, and the decision may wait for an administrator there. When it has joined, the same command
    only runs it: `module parent add` is for further parents. Without both, it runs as it ran last.

    With --topology, the first run makes a root key for this site, STATE/FEDERATION/tls/root.pem and root.key. Run every
    module of the site with the same STATE, or with its own certificate signed by that root. Two sites that link to each
    other exchange their root.pem (never root.key) by hand over a channel that both trust; each lists the other's system
    as `external: true` with `trust: FILE`, the copy. They use the same `federation` name.

    Which accounts of this host may use it is decided by `users` in the topology. They find its socket in the state
    directory or, with --sockets, as DIR/FEDERATION/NAME.sock.

    As root, it runs tasks in sandboxes; or, where the host refuses them or the topology has `isolation: process` for
    its machine, as processes of one account without a name, which no other module uses meanwhile. As any other account,
    it runs tasks as that account, which gives every task access to everything that the account can access, including
    the module's own keys and database, unless the topology has `isolation: bubblewrap` for its machine.
    """
    from messiahs.cli.federation.deployment import put_sockets, sockets_directory
    from messiahs.cli.module.own_account import warning_of
    from messiahs.config.settings import load_settings
    from messiahs.daemon.process.environment import daemon_environment
    from messiahs.daemon.process.hangup import hold_hangups

    # The daemon handles it.
    hold_hangups()
    _check(options)
    sockets = sockets_directory(options["sockets"])
    file = _settings_file(name, options)
    settings = load_settings(file) if sockets is None else put_sockets(file, sockets)
    warning = warning_of(settings, os.geteuid())
    if warning:
        print_text(warning, err=True)
    print_text(f"{settings.name} starts; {settings.directory / 'module.log'} says when it serves", err=True)
    os.chdir(settings.state_directory)
    # A file that is named is taken over as `topology apply` does; without one, links that were ended stay so.
    applies = ["--apply"] if options["topology_file"] is not None else []
    command = [sys.executable, "-m", "messiahs.daemon", str(file), *applies]
    os.execve(sys.executable, command, daemon_environment())  # noqa: S606 # the daemon takes this process over


def _check(options: _RunOptions) -> None:
    """Raise a usage error for options that do not belong together."""
    if (options["join"] is None) != (options["token"] is None):
        raise click.UsageError("--join HOST:PORT and --token FILE belong together")
    if options["join"] is not None and options["topology_file"] is not None:
        raise click.UsageError("a module is either in a topology file, or joins with --join")
    given = [each for each in ("listen", "machine", "policy") if options[each]]
    if given and options["join"] is None:
        raise click.UsageError(f"--{given[0]} is only for a module that joins (--join)")


def _settings_file(name: str, options: _RunOptions) -> Path:
    """Prepare a run, and return the file of the settings."""
    from messiahs.cli.federation.deployment import federation_directory, prepare_again, prepare_one, stored_settings
    from messiahs.config.topology.reading import load_topology

    warn = partial(print_text, err=True)
    state = state_directory(options["state"])
    if options["topology_file"] is not None:
        topology = load_topology(options["topology_file"])
        return prepare_one(topology, name, directory=federation_directory(state, topology.federation), warn=warn)
    file = stored_settings(state, name) if options["join"] is None else _joined(name, options, state)
    federation_directory(state, file.parent.parent.name)
    prepare_again(file, warn=warn)
    return file


def _joined(name: str, options: _RunOptions, state: Path) -> Path:
    from messiahs.cli.federation.deployment import federation_directory, settings_of_last_run
    from messiahs.cli.federation.newcomer import Newcomer, joined_settings, read_token

    assert options["token"] is not None
    if not options["token"].exists() and (file := settings_of_last_run(state, name)) is not None:
        # The token was removed after its use.
        print_text(f"{options['token']} is not there: `{name}` runs as it ran last, with the parents of then", err=True)
        return file
    token = read_token(options["token"], address=options["join"] or "")
    newcomer = Newcomer(
        name=name,
        listen=options["listen"],
        machine=None if options["machine"] is None else _pairs(options["machine"]),
        policy_file=options["policy"],
    )
    directory = federation_directory(state, token.federation)
    try:
        return joined_settings(newcomer, token, directory=directory, report=lambda text: print_text(text, err=True))
    except ClientError:
        raise
    except MessiahsError as error:
        raise ClientError(str(error)) from error


def _pairs(text: str) -> dict[str, str]:
    """Read `slots=2,gpus=1`; an empty text has no pairs, so that everything is measured."""
    pairs = [each.partition("=") for each in text.split(",")] if text else []
    if not all(name and equals and value for name, equals, value in pairs):
        raise click.UsageError("--machine takes KEY=VALUE,…, such as slots=2,gpus=1; an empty text has all measured")
    for name, _, _ in pairs:
        _check_key(name)
    return {name: value for name, _, value in pairs}


def _check_key(name: str) -> None:
    """Raise a usage error for a key that is almost that of a machine; other unknown ones are attributes."""
    from difflib import get_close_matches

    from messiahs.config.topology.machine import MACHINE_KEYS

    known = sorted({*MACHINE_KEYS} - {"attributes"})
    if name not in known and (near := get_close_matches(name, known, n=1, cutoff=_NEAR)):
        text = f"--machine has no key `{name}`: is `{near[0]}` meant? The keys are {', '.join(known)}"
        raise click.UsageError(f"{text}; an attribute of your own needs a name less like one of them")
