"""`messiahs up` and `down`: every module of a topology on this machine, one supervised process each."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from messiahs.cli.options import JSON, SOCKETS, STATE, TOPOLOGY
from messiahs.cli.output import print_document, print_text
from messiahs.client.locating import state_directory
from messiahs.errors import ClientError

if TYPE_CHECKING:
    from messiahs.cli.federation.awaiting import Report
    from messiahs.config.settings import ModuleSettings
    from messiahs.config.topology.topology import Topology

_POLL_SECONDS = 0.05
_SUPERVISOR_END_SECONDS = 40.0
_LOCK_SECONDS = 120.0
"""How long another `down` may hold the lock while it ends modules."""


@click.command()
@TOPOLOGY
@STATE
@SOCKETS
@JSON
@click.option("--detach", is_flag=True, help="Return once every module has received from all its neighbors.")
@click.option(
    "--wait", "wait_seconds", type=click.FloatRange(min=0), default=30, help="Seconds that --detach waits [30]."
)
def up(
    topology_file: Path,
    *,
    state: Path | None,
    sockets: Path | None,
    as_json: bool,
    detach: bool,
    wait_seconds: float,
) -> int:
    """Run every module of TOPOLOGY on this machine, over loopback and mutual TLS.

    The hosts and ports of TOPOLOGY are not used. External systems are left out, since they could not find a module at a
    free port of this machine. Without --detach it runs until Ctrl-C. With it, modules that are not linked in time are
    listed, the exit code is 1, and all of them keep running. A module whose state cannot be used is told at once, with
    the reason, and the others keep running. Links of TOPOLOGY that were removed at run time are named; they stay away.
    With --sockets, users of the host find the socket of each module as
    DIR/FEDERATION/MODULE.sock.
    """
    from messiahs.cli.federation.awaiting import await_links, removed_links, report_from
    from messiahs.cli.federation.deployment import (
        federation_directory,
        lock_federation,
        prepare,
        sockets_directory,
        starting,
    )
    from messiahs.config.topology.reading import load_topology
    from messiahs.daemon.supervision.supervisor import IN_FRONT

    topology = _own_part(load_topology(topology_file))
    directory = federation_directory(state_directory(state), topology.federation)
    sockets = sockets_directory(sockets)
    lock = lock_federation(directory)
    try:
        with starting(directory):
            modules = prepare(topology, directory, file=topology_file, sockets=sockets)
        command = [sys.executable, "-m", "messiahs.daemon.supervision.supervisor", str(directory)]
        if not detach:
            _become([*command, IN_FRONT], directory)
        report = report_from(directory)
        supervisor = _start(command, report, lock=lock)
    finally:
        # The supervisor, if there is one, alone holds it from now on.
        os.close(lock)
    try:
        missing = await_links(modules, supervisor, report=report, deadline=time.monotonic() + wait_seconds)
    finally:
        supervisor_code = supervisor.poll()
        # The supervisor outlives this process on purpose; without this, Popen warns that it was not waited for.
        supervisor.returncode = 0
    if supervisor_code is not None:
        if supervisor_code == 0:
            raise ClientError("the federation was ended during its start, by `messiahs down` or a signal")
        raise ClientError(f"the supervisor ended with {supervisor_code}: see {report.log}")
    if missing:
        raise ClientError(f"`{topology.federation}` is not linked after {wait_seconds:g} s:\n" + "\n".join(missing))
    _show(modules, as_json=as_json)
    for note in removed_links(modules, state=state):
        print_text(f"messiahs: {note}", err=True)
    return 0


def _start(command: list[str], report: "Report", *, lock: int) -> "subprocess.Popen[bytes]":
    """Start the supervisor of a federation, which holds its lock beside this process."""
    from messiahs.daemon.process.environment import daemon_environment

    with report.log.open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=report.log.parent,
            env=daemon_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )


def _become(command: list[str], directory: Path) -> NoReturn:
    """Become the supervisor of a federation, which keeps the lock of this process."""
    from messiahs.daemon.process.environment import daemon_environment
    from messiahs.daemon.process.hangup import hold_hangups

    hold_hangups()
    sys.stdout.flush()
    os.chdir(directory)
    os.execve(sys.executable, command, daemon_environment())  # noqa: S606 - the supervisor replaces this process


@click.command()
@TOPOLOGY
@STATE
def down(topology_file: Path, *, state: Path | None) -> None:
    """End every module that `up TOPOLOGY` runs, with its tasks; return when no process is left. Stored data stays.

    TOPOLOGY may be invalid or missing, as long as the federation that was started from it is known.
    """
    from messiahs.cli.federation.known_federations import federation_of

    place = state_directory(state)
    federation = federation_of(topology_file, place)
    directory = place / federation
    was_up = directory.is_dir() and _take_down(directory)
    print_text(f"{federation}: {'down' if was_up else 'nothing was running'}")


def _own_part(topology: "Topology") -> "Topology":
    left = topology.without_externals()
    externals = ", ".join(system.name for system in topology.externals)
    if not left.systems:
        raise ClientError(f"every system is external ({externals}): there is nothing to run from this file")
    if externals:
        print_text(f"messiahs: external systems are left out: {externals} (`module run` links with them)", err=True)
    return left


def _take_down(directory: Path) -> bool:
    """End the process that runs or starts a federation, then all its modules; return whether any was running.

    Polls the federation's lock: while another process holds it, a supervisor may record itself, and is then ended.
    Raises ClientError if a process without a record holds the lock for longer than `_LOCK_SECONDS`.
    """
    from messiahs.cli.federation.deployment import open_lock
    from messiahs.cli.federation.private_folders import check_federation
    from messiahs.daemon.process.pid_files import (
        PID_FILE,
        end_modules,
        end_processes,
        recorded_process,
        recorded_processes,
    )

    # Pid files that other users could have written must not choose the processes to end.
    check_federation(directory)
    was_up = bool(recorded_processes(directory))
    deadline = time.monotonic() + _LOCK_SECONDS
    descriptor = open_lock(directory)
    try:
        while True:
            # A starting `up` records itself, and later its supervisor, each a moment after its start.
            supervisor = recorded_process(directory / PID_FILE)
            if supervisor is not None:
                was_up = True
                end_processes((supervisor,), seconds=_SUPERVISOR_END_SECONDS)
            if _is_locked(descriptor):
                break
            if time.monotonic() >= deadline:
                raise ClientError(f"another process holds {directory / 'up.lock'}, and no pid file names it")
            time.sleep(_POLL_SECONDS)
        # The lock keeps another `up` from starting while the modules of a killed supervisor are ended.
        end_modules(directory)
        (directory / PID_FILE).unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return was_up


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _show(modules: "tuple[ModuleSettings, ...]", *, as_json: bool) -> None:
    if as_json:
        listed = [{"name": settings.name, "address": settings.listen} for settings in modules]
        print_document({"federation": modules[0].federation, "modules": listed})
        return
    for settings in modules:
        print_text(f"{settings.name}: up{f' at {settings.listen}' if settings.listen else ', nobody can dial it'}")
