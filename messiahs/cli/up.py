"""`messiahs up` and `down`: every module of a topology on this machine, one process each, supervised."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON, STATE, TOPOLOGY
from messiahs.cli.output import print_document
from messiahs.client.connection import Connection
from messiahs.client.locating import state_directory
from messiahs.errors import ClientError

if TYPE_CHECKING:
    from messiahs.config.settings import ModuleSettings
    from messiahs.config.topology import Topology

_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2.0
_SUPERVISOR_END_SECONDS = 40.0


@click.command()
@TOPOLOGY
@STATE
@JSON
@click.option("--detach", is_flag=True, help="Return once every module has heard from all its neighbors.")
@click.option("--wait", "wait_seconds", type=click.FloatRange(min=0), default=30, help="How long --detach waits [30].")
def up(topology_file: Path, *, state: Path | None, as_json: bool, detach: bool, wait_seconds: float) -> int:
    """Run every module of TOPOLOGY on this machine, over loopback and mutual TLS.

    Its hosts and ports are not used, and external systems are left out: nobody could find this module at a free port
    of this machine. Without --detach it runs until Ctrl-C.
    """
    from messiahs.cli.deployment import federation_directory, lock_federation, prepare
    from messiahs.config.topology_reading import load_topology
    from messiahs.daemon.hangup import hold_hangups

    topology = _own_part(load_topology(topology_file))
    directory = federation_directory(state_directory(state), topology.federation)
    lock = lock_federation(directory)
    modules = prepare(topology, directory)
    command = [sys.executable, "-m", "messiahs.daemon.supervise", str(directory)]
    if not detach:
        hold_hangups()
        sys.stdout.flush()
        os.chdir(directory)
        os.execv(sys.executable, command)  # noqa: S606 # the supervisor takes this process over, lock and all
    with (directory / "supervisor.log").open("ab") as log:
        supervisor = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    # From here on the supervisor alone holds it.
    os.close(lock)
    missing = _await_links(modules, supervisor, deadline=time.monotonic() + wait_seconds)
    # It outlives us on purpose, so nobody is to warn that it was not waited for.
    supervisor.returncode = 0
    if missing:
        raise ClientError(f"`{topology.federation}` is not whole after {wait_seconds:g} s:\n" + "\n".join(missing))
    _show(modules, as_json=as_json)
    return 0


@click.command()
@TOPOLOGY
@STATE
def down(topology_file: Path, *, state: Path | None) -> None:
    """End every module of TOPOLOGY with its tasks; return when no process is left. What is stored stays."""
    from messiahs.config.topology_reading import load_topology

    topology = load_topology(topology_file)
    directory = state_directory(state) / topology.federation
    was_up = directory.is_dir() and _take_down(directory)
    click.echo(f"{topology.federation}: {'down' if was_up else 'nothing was running'}")


def _own_part(topology: "Topology") -> "Topology":
    left = topology.without_externals()
    externals = ", ".join(system.name for system in topology.externals)
    if not left.systems:
        raise ClientError(f"every system is external ({externals}): there is nothing to run from this file")
    if externals:
        click.echo(f"messiahs: external systems are left out: {externals} (`module run` links with them)", err=True)
    return left


def _take_down(directory: Path) -> bool:
    from messiahs.daemon.recorded import PID_FILE, end_modules, end_processes, recorded_process, recorded_processes

    supervisor = recorded_process(directory / PID_FILE)
    was_up = supervisor is not None or bool(recorded_processes(directory))
    end_processes(() if supervisor is None else (supervisor,), seconds=_SUPERVISOR_END_SECONDS)
    descriptor = os.open(directory / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # No other `up` can begin while what a killed supervisor left behind is ended.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        end_modules(directory)
        (directory / PID_FILE).unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return was_up


def _await_links(
    modules: "tuple[ModuleSettings, ...]", supervisor: "subprocess.Popen[bytes]", *, deadline: float
) -> tuple[str, ...]:
    """Give what is still missing at the deadline: nothing as soon as everybody has heard from every neighbor."""
    waiting = modules
    while True:
        trouble = {settings.name: _trouble_of(settings) for settings in waiting}
        waiting = tuple(settings for settings in waiting if trouble[settings.name])
        if supervisor.poll() is not None:
            return (
                f"the supervisor ended with {supervisor.returncode}: see {modules[0].state_directory}/supervisor.log",
            )
        if not waiting or time.monotonic() >= deadline:
            return tuple(trouble[settings.name] for settings in waiting)
        time.sleep(_POLL_SECONDS)


def _trouble_of(settings: "ModuleSettings") -> str:
    connection = Connection(settings.socket)
    try:
        told = connection.ask("GET", "/v1/module", patience=0, answer_seconds=_ANSWER_SECONDS)
    except ClientError:
        return f"  {settings.name} is silent: see {settings.directory / 'daemon.log'}"
    finally:
        connection.close()
    unheard = sorted({link.neighbor.system for link in settings.neighbors} - set(told["heard"]))
    return f"  {settings.name} has not heard from {', '.join(unheard)}" if unheard else ""


def _show(modules: "tuple[ModuleSettings, ...]", *, as_json: bool) -> None:
    if as_json:
        listed = [{"name": settings.name, "address": settings.listen} for settings in modules]
        print_document({"federation": modules[0].federation, "modules": listed})
        return
    for settings in modules:
        click.echo(f"{settings.name}: up at {settings.listen}")
