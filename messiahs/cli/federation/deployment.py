"""Files that `up` and `module run` write under STATE/FEDERATION before a module starts: ports, keys, settings."""

import errno
import fcntl
import grp
import json
import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from messiahs.cli.federation.certificates import make_certificates, tls_paths
from messiahs.cli.federation.private_folders import check_federation, check_way
from messiahs.client.locating import check_socket_path, known_modules
from messiahs.config.local_users import group_in
from messiahs.config.settings import ModuleSettings, load_settings, save_settings
from messiahs.config.topology.files import problem_with_copy, problem_with_roots
from messiahs.config.topology.neighbors import module_settings
from messiahs.config.topology.reach import is_dialable
from messiahs.config.topology.topology import Topology
from messiahs.config.whole_files import write_whole
from messiahs.daemon.process.pid_files import (
    DAEMON_FILES,
    PID_FILE,
    record_this_process,
    recorded_process,
    recorded_processes,
)
from messiahs.daemon.storage.disk_reserve import release_reserve
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from messiahs.errors import ClientError, explained

LOOPBACK = "127.0.0.1"
_LOWEST_PORT = 10_240
_TRIES_PER_PORT = 100
_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def federation_directory(state: Path, federation: str) -> Path:
    """Return STATE/FEDERATION, created for its owner alone; raises ClientError if other users could change it."""
    directory = state / federation
    # Never create a folder through a link that another user put there.
    check_way(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ClientError(f"the state directory {directory} cannot be made: {error.strerror}") from error
    check_federation(directory)
    return directory


def lock_federation(directory: Path) -> int:
    """Lock a federation that is not running, and return the lock's descriptor; a process that inherits it keeps it."""
    with writing(directory):
        descriptor = open_lock(directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        running = recorded_process(directory / PID_FILE)
        processes = f" (process {running.pid})" if running else ""
        raise ClientError(f"`{directory.name}` is already up{processes}; `messiahs down TOPOLOGY` ends it") from None
    left = recorded_processes(directory, DAEMON_FILES)
    if left:
        os.close(descriptor)
        processes = ", ".join(str(process.pid) for process in left)
        text = f"modules of `{directory.name}` still run (processes {processes}); `messiahs down TOPOLOGY` ends them"
        raise ClientError(text)
    os.set_inheritable(descriptor, True)
    return descriptor


def open_lock(directory: Path) -> int:
    """Open the lock file of a federation and return its descriptor; raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(directory / "up.lock", flags, 0o600)


@contextmanager
def starting(directory: Path) -> Iterator[None]:
    """Record this process as the one that runs a federation, so that `down` can end it before a supervisor exists.

    The record is removed if the block fails.
    """
    with writing(directory):
        record_this_process(directory / PID_FILE)
    try:
        yield
    except BaseException:
        (directory / PID_FILE).unlink(missing_ok=True)
        raise


def prepare(
    topology: Topology, directory: Path, *, file: Path | None = None, sockets: Path | None = None
) -> tuple[ModuleSettings, ...]:
    """Write the settings of every module and the supervisor's plan; the modules' databases are unchanged.

    The topology must not contain external systems. `file` is its source, and `sockets` the folder for the sockets of
    the modules; None: the state directory.
    """
    names = [str(system.name) for system in topology.systems]
    with writing(directory):
        for name in names:
            make_folder(directory, name)
        dialable = [str(system.name) for system in topology.systems if is_dialable(system)]
        ports = assigned_ports(directory / "ports.json", dialable)
        addresses = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
        make_certificates(directory, names)
        made = tuple(
            replace(settings_of(topology, name, directory=directory, addresses=addresses), sockets=sockets)
            for name in names
        )
        for settings in made:
            check_users(settings)
        for settings in made:
            save_settings(settings, settings.directory / "settings.json")
        write_plan(directory, names, file=file)
    return made


def sockets_directory(sockets: Path | None) -> Path | None:
    """Return the path of a folder for sockets; raises ClientError if other users could change the way to it."""
    if sockets is None:
        return None
    check_way(sockets.absolute())
    return sockets.absolute()


def put_sockets(file: Path, sockets: Path) -> ModuleSettings:
    """Store in which folder the users of a module find its socket, and return the module's settings."""
    settings = load_settings(file)
    if settings.sockets != sockets:
        settings = replace(settings, sockets=sockets)
        check_socket_path(settings.users_socket)
        with writing(settings.state_directory):
            save_settings(settings, file)
    return settings


def write_plan(directory: Path, names: Sequence[str], *, file: Path | None) -> None:
    """Write which modules the supervisor runs, and from which topology; raises OSError."""
    noted = {} if file is None else {"topology": str(file.absolute())}
    write_whole(directory / PLAN_FILE, json.dumps({"modules": list(names), **noted}).encode())


def prepare_one(topology: Topology, name: str, *, directory: Path, warn: Callable[[str], None]) -> Path:
    """Write the settings of one module that runs at its own host and port, and return their file.

    Raises ClientError if it cannot run here: it is running, its port is in use, its certificate is of no use and there
    is no key to sign another, or the root of another site is missing. `warn` gets what was wrong with a certificate
    that is replaced.
    """
    if topology.system(name).is_external:
        raise ClientError(f"`{name}` is external: run it from the topology file of its own site")
    addresses = {str(other.name): other.address for other in topology.systems if other.address is not None}
    settings = settings_of(topology, name, directory=directory, addresses=addresses)
    with writing(directory):
        make_folder(directory, name)
        _check_startable(settings, warn)
        save_settings(settings, settings.directory / "settings.json")
    return settings.directory / "settings.json"


def settings_of_last_run(state: Path, name: str) -> Path | None:
    """Return the settings file that an earlier run of a module left; None without one, or with several."""
    places = (place.directory / "settings.json" for place in known_modules(state) if place.module == name)
    found = [file for file in places if file.exists()]
    return found[0] if len(found) == 1 else None


def stored_settings(state: Path, name: str) -> Path:
    """Return the settings file that an earlier run of a module left; a `ClientError` unless there is exactly one."""
    file = settings_of_last_run(state, name)
    if file is None:
        text = f"{state} has not exactly one module `{name}` with settings"
        raise ClientError(f"{text}: name its file with --topology, or join with --join")
    return file


def prepare_again(file: Path, *, warn: Callable[[str], None]) -> None:
    """Let a module run from the settings of its last run; raises a `ClientError` as `prepare_one` does."""
    settings = load_settings(file)
    directory = settings.state_directory
    if directory.absolute() != file.parent.parent.absolute():
        raise ClientError(f"{file} is for the state in {directory}: it was moved; name the topology file or join again")
    with writing(directory):
        make_folder(directory, settings.name)
        _check_startable(settings, warn)


def refuse_taken(address: str) -> None:
    """Raise a `ClientError` if a module could not listen at host:port, before anything is started."""
    host, _, port = address.rpartition(":")
    try:
        for family, kind, _, _, place in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as probe:
                # Lingering connections of the last run are no obstacle; a listener is.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
    except OSError as error:
        hints = {
            errno.EADDRINUSE: f"port {port} is in use by another process",
            errno.EADDRNOTAVAIL: f"{host} is not an address of this host",
        }
        raise ClientError(f"cannot listen on {address}: {hints.get(error.errno or 0, error.strerror)}") from error


def _check_startable(settings: ModuleSettings, warn: Callable[[str], None]) -> None:
    """Raise a `ClientError` if a module cannot run here, after its certificate was renewed if that is possible."""
    running = recorded_process(settings.directory / "daemon.pid")
    if running is not None:
        raise ClientError(f"`{settings.name}` is already running (process {running.pid})")
    if settings.listen:
        refuse_taken(settings.listen)
    if settings.bulk_port:
        refuse_taken(f"{settings.listen.rpartition(':')[0]}:{settings.bulk_port}")
    for problem in make_certificates(settings.state_directory, [settings.name]):
        warn(f"messiahs: warning: {problem}")
    check_roots(settings)
    check_users(settings)


def settings_of(topology: Topology, name: str, *, directory: Path, addresses: Mapping[str, str]) -> ModuleSettings:
    """Return the settings of a module whose state lies in a federation's folder."""
    tls = tls_paths(directory, name)
    return module_settings(topology, name, addresses=addresses, state_directory=directory, tls=tls)


def make_folder(directory: Path, name: str) -> None:
    """Make the folder of a module, with the space that it reserved for a start if its disk is full."""
    check_socket_path(directory / f"{name}.sock")
    (directory / name).mkdir(exist_ok=True, mode=0o700)
    release_reserve(directory / name)


def check_roots(settings: ModuleSettings) -> None:
    """Raise a ClientError if a root of another site that a module needs is missing or wrong."""
    linked = [(link.neighbor.system, each.file) for link in settings.neighbors for each in link.trust]
    recorded = [(f"is linked with `{system}`", f"`{system}`", file) for system, file in linked]
    introduced = [("has another site introduced to it", "that site", each.file) for each in settings.introductions]
    for what, whom, file in (*recorded, *introduced):
        problem = problem_with_roots(file)
        if problem:
            problem += f"; the root to give to {whom} is {settings.trust_file}"
        problem = problem or problem_with_copy(file, settings.trust_file)
        if problem:
            raise ClientError(f"`{settings.name}` {what}: {problem}")


def check_users(settings: ModuleSettings) -> None:
    """Raise a ClientError if the group of the accounts that may use a module is not on this host."""
    group = group_in(settings.users)
    if group is None:
        return
    try:
        grp.getgrnam(group)
    except KeyError:
        text = f"`{settings.name}` has `users: group:{group}`, and this host has no group {group}"
        raise ClientError(f"{text}: make it (groupadd {group}), or say in the topology who may use it") from None


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turn errors of the disk into a `ClientError` that names the state."""
    try:
        yield
    except OSError as error:
        raise ClientError(f"the state in {directory} cannot be written: {explained(error)}") from error


def assigned_ports(file: Path, names: Sequence[str], *, running: Collection[str] = ()) -> dict[str, int]:
    """Assign each module a port that is free now: the one of the last run if possible, since neighbors know it.

    Running modules keep theirs. The ports are recorded in `file`; raises OSError.
    """
    try:
        last = json.loads(file.read_bytes())
    except (OSError, ValueError):
        last = {}
    chosen: dict[str, int] = {}
    for name in names:
        port = last.get(name)
        is_good = isinstance(port, int) and port not in chosen.values() and (name in running or _is_free(port))
        chosen[name] = port if is_good else _free_port(frozenset(chosen.values()) | frozenset(last.values()))
    write_whole(file, json.dumps({**last, **chosen}).encode())
    return chosen


def _free_port(taken: frozenset[int]) -> int:
    """Return a free port outside the kernel's range for outgoing connections, which would collide."""
    highest = 32_768
    with suppress(OSError, ValueError):
        highest = int(_EPHEMERAL_PORTS.read_text(encoding="ascii").split()[0])
    if highest <= _LOWEST_PORT:
        highest = 65_536
    for _ in range(_TRIES_PER_PORT):
        port = _LOWEST_PORT + secrets.randbelow(highest - _LOWEST_PORT)
        if port not in taken and _is_free(port):
            return port
    raise ClientError(f"no free port between {_LOWEST_PORT} and {highest}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Lingering connections of the last run are no obstacle; a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):
            return False
        return True
