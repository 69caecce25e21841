"""What `messiahs up` lays down under STATE/FEDERATION before it starts anything: ports, certificates, settings."""

import fcntl
import json
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path

from messiahs.cli.certificates import tls_files
from messiahs.client.locating import check_socket_path
from messiahs.config.settings import ModuleSettings, save_settings
from messiahs.config.topology import Topology
from messiahs.config.topology_neighbors import module_settings
from messiahs.daemon.supervise import DAEMON_FILES, PID_FILE, PLAN_FILE, recorded_process, recorded_processes
from messiahs.errors import ClientError

LOOPBACK = "127.0.0.1"
_LOWEST_PORT = 10_240
_TRIES_PER_PORT = 100
_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def federation_directory(state: Path, federation: str) -> Path:
    """Give STATE/FEDERATION, made if need be, for its owner alone."""
    directory = state / federation
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ClientError(f"the state directory {directory} cannot be made: {error.strerror}") from error
    return directory


def lock_federation(directory: Path) -> int:
    """Take the lock of a federation that nobody runs; whoever inherits the descriptor holds the lock, too."""
    descriptor = os.open(directory / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        running = recorded_process(directory / PID_FILE)
        told = f" (process {running.pid})" if running else ""
        raise ClientError(f"`{directory.name}` is up already{told}; `messiahs down TOPOLOGY` ends it") from None
    left = recorded_processes(directory, DAEMON_FILES)
    if left:
        os.close(descriptor)
        told = ", ".join(str(process.pid) for process in left)
        text = f"modules of `{directory.name}` still run (processes {told}); `messiahs down TOPOLOGY` ends them"
        raise ClientError(text)
    os.set_inheritable(descriptor, True)
    return descriptor


def prepare(topology: Topology, directory: Path) -> tuple[ModuleSettings, ...]:
    """Write the settings of every module and the supervisor's plan; module's databases are left as they are."""
    names = [str(system.name) for system in topology.systems]
    for name in names:
        check_socket_path(directory / f"{name}.sock")
        (directory / name).mkdir(exist_ok=True, mode=0o700)
    addresses = {name: f"{LOOPBACK}:{port}" for name, port in _ports(directory / "ports.json", names).items()}
    tls = tls_files(directory, names)
    made = tuple(
        module_settings(topology, name, addresses=addresses, state_directory=directory, tls=tls[name]) for name in names
    )
    for settings in made:
        save_settings(settings, settings.directory / "settings.json")
    (directory / PLAN_FILE).write_text(json.dumps({"modules": names}), encoding="utf-8")
    return made


def _ports(file: Path, names: list[str]) -> dict[str, int]:
    """Give each module a port that is free now: the one of the last time if possible, since neighbors know it."""
    try:
        last = json.loads(file.read_bytes())
    except (OSError, ValueError):
        last = {}
    chosen: dict[str, int] = {}
    for name in names:
        port = last.get(name)
        is_good = isinstance(port, int) and port not in chosen.values() and _is_free(port)
        chosen[name] = port if is_good else _free_port(frozenset(chosen.values()) | frozenset(last.values()))
    file.write_text(json.dumps({**last, **chosen}), encoding="utf-8")
    return chosen


def _free_port(taken: frozenset[int]) -> int:
    """Give a free port outside the range from which the kernel serves outgoing connections, which would collide."""
    highest = 32_768
    with suppress(OSError, ValueError):
        highest = int(_EPHEMERAL_PORTS.read_text(encoding="ascii").split()[0])
    if highest <= _LOWEST_PORT:
        highest = 65_536
    for _ in range(_TRIES_PER_PORT):
        port = _LOWEST_PORT + secrets.randbelow(highest - _LOWEST_PORT)
        if port not in taken and _is_free(port):
            return port
    raise ClientError(f"no free port was found between {_LOWEST_PORT} and {highest}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of the last run that linger are no obstacle, a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):
            return False
        return True
