"""The settings of one module for its daemon: derived from a topology, one JSON file per module."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.core.interface.limits import SIBLINGS
from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import Counted
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_limits import Maxima
from messiahs.errors import MessiahsError

DEFAULT_TASK_UIDS = (2_100_000_000, 2_100_001_023)
"""Accounts of the tasks of root's modules: above what directories (to 2,000,200,000) and containers use by default."""

PROCESS, SANDBOX, BUBBLEWRAP = "process", "sandbox", "bubblewrap"
"""Ways of containing tasks: as ordinary processes of an account, in sandboxes, and in sandboxes of bubblewrap(1)."""
AUTOMATIC = ""
"""Nobody has chosen one of them: `sandbox` for a daemon that runs as root and can set them up, else `process`."""
OUTBOUND = "outbound"
"""A network whose tasks may open connections, and to which nobody can; it needs a `SANDBOX` or `BUBBLEWRAP`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFile:
    """A file with roots of another site, and patterns of the names for which they may vouch (`*` is any text)."""

    file: Path
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborSettings:
    """A neighbor; `address` (host:port) is where this module dials it, None if the neighbor dials.

    `known_at` (host:port) is where anybody can dial it as far as the topology says; empty if that is not known. Only
    the roots in `trust` vouch for it; if there are none, those in the module's own trust file.
    """

    neighbor: Neighbor
    address: str | None
    trust: tuple[TrustedFile, ...] = ()
    known_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """The machine of a system: `probe` is `proc` (measured) or `fixed`; `attributes` (without `$`) override it.

    The last use of `console_file` counts as use of the console; None: the last read of a terminal counts.
    """

    probe: str = "proc"
    console_file: Path | None = None
    isolation: str = PROCESS
    """How its tasks are contained: `process`, `sandbox`, `bubblewrap` or `AUTOMATIC`.

    Settings without this key are those of an earlier release, whose default was `process`.
    """
    network: str = "loopback"
    """What tasks in sandboxes reach: `none`, `loopback`, `outbound` or `host`."""
    shown: tuple[str, ...] = ()
    """The folders of the host that they see; none: all but those of users and services (`bubblewrap`: the system's)."""
    task_uids: tuple[int, int] = DEFAULT_TASK_UIDS
    """The first and the last of the accounts of tasks, if root runs the module.

    Each task in a sandbox has one of them, and all tasks without one (or with `bubblewrap`) have the same one.
    """
    lends_account: bool = False
    """Whether tasks of other sites may run as the module's own account, with all of its rights."""
    attributes: dict[str, Value] = field(default_factory=dict)
    counted: tuple[Counted, ...] = ()
    """Its GPUs, licences and other counted things, each of which is assigned to one task at a time."""
    devices: dict[str, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    """The device files of counted things that have some, by the names of their kinds and their numbers."""
    maxima: Maxima = field(default_factory=Maxima)
    """The most memory, disk and run time that one task may have."""
    open_files: int | None = None
    """How many files each process of a task may open at most; None: as many as the daemon may."""

    @property
    def at_most(self) -> dict[str, int]:
        """The most that one task may have, by the keys of `at_most` in a topology: bytes, seconds and a number."""
        maxima = self.maxima
        found = {
            "mem": maxima.memory_bytes,
            "disk": maxima.disk_bytes,
            "time": maxima.run_seconds,
            "open_files": self.open_files,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteSettings:
    """Bounds on the bytes that a module stores and passes on for others.

    `cache_bytes` is the size of all stored inputs together that no task uses. The others hold for each neighbor, and
    for any other system that sends or reads bytes here: streams of files at once, and as many of running tasks; bytes
    in a second and in a day (None: any number).
    """

    cache_bytes: int = 10 << 30
    streams: int = 64
    rate_bytes: int | None = None
    daily_bytes: int | None = None
    outputs_bytes: int | None = None
    """The size of all outputs of one own task together, however much disk it states; None: as much as it states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How a module keeps connections alive, and how it dials.

    An unused connection carries something every `keep_alive_ns`, and ends if the peer does not answer for half as long
    after that. `http_proxy` is the URL of an HTTP proxy, with a password if it needs one; None: the environment's.
    """

    keep_alive_ns: int = 10 * SECOND
    http_proxy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Where a module serves its metrics: `host` (an address, or `localhost`) and `port`.

    Without `client_roots` (PEM) the address is on loopback, and whoever can connect may ask. With them, only holders of
    certificates that these roots vouch for may, over TLS.
    """

    host: str
    port: int
    client_roots: Path | None = None

    @property
    def address(self) -> str:
        """Return host:port, with an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """Where a module sends spans: the URL of a collector for traces, and the roots (PEM) of its certificate.

    Without `roots`, those of the host vouch for it. A URL with `http` is on loopback.
    """

    endpoint: str
    roots: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSettings:
    """Everything that a daemon needs to know; paths are absolute, durations are nanoseconds."""

    federation: str
    name: str
    state_directory: Path
    """Contains `NAME.sock` and the folder `NAME/` with the module's database, log and attempts."""
    listen: str
    """host:port on which the module listens, and which others dial; empty: nobody can dial it, and it dials others."""
    bulk_port: int = 0
    """Port of the same host on which it listens for the bytes of large files; 0: any free one."""
    certificate_file: Path
    key_file: Path
    trust_file: Path
    """Roots of this site; they vouch for every system for which no other roots are recorded."""
    introductions: tuple[TrustedFile, ...] = ()
    """Roots of other sites that vouch for systems without a link with this module."""
    trusts_relays: bool = False
    """Whether modules of third sites may pass bytes on that they can read and alter."""
    policy_file: Path | None = None
    """The system's policy file; None: accept everything."""
    neighbors: tuple[NeighborSettings, ...] = ()
    machine: MachineSettings | None = None
    is_border: bool = False
    """It stands for all systems below it, whose names do not leave it (`reach: proxy`)."""
    borders: tuple[str, ...] = ()
    """Borders behind which it is, as far as the topology file or the token that it joined with names them."""
    has_joined: bool = False
    """It joined with a token, so no topology file lists its links."""
    byte_limits: ByteSettings = field(default_factory=ByteSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)
    siblings: int = SIBLINGS
    """The most links with siblings that it has, or assigns to each of its children."""
    update_period_ns: int = 2 * SECOND
    lease_ns: int = 15 * MINUTE
    users: str = ""
    """Which accounts of the host may use it (config/local_users.py); empty: as for its own account."""
    webhook_hosts: tuple[str, ...] = ()
    """Hosts to which it posts the ends of tasks for their users: HOST, or HOST:PORT for another port than the usual."""
    metrics: MetricsSettings | None = None
    """Where it serves metrics for Prometheus; None: nowhere."""
    otlp: OtlpSettings | None = None
    """Where it sends the spans of attempts of its users' tasks; None: nowhere."""
    sockets: Path | None = None
    """Folder in which its users find its socket, as FEDERATION/NAME.sock; None: the state directory."""

    @property
    def socket(self) -> Path:
        """Path of the local API's socket, or of a link to it, in the state directory."""
        return self.state_directory / f"{self.name}.sock"

    @property
    def users_socket(self) -> Path:
        """Path of the local API's socket."""
        return self.socket if self.sockets is None else self.sockets / self.federation / self.socket.name

    @property
    def task_uids(self) -> tuple[int, int] | None:
        """The accounts of its tasks, if root runs it; None: it runs no tasks."""
        return None if self.machine is None else self.machine.task_uids

    @property
    def directory(self) -> Path:
        """The module's folder."""
        return self.state_directory / self.name


def load_settings(path: Path) -> ModuleSettings:
    """Read a settings file; a `MessiahsError` explains what is wrong with it."""
    try:
        return msgspec.json.decode(read_regular(path), type=ModuleSettings, dec_hook=_from_text)
    except (OSError, ValueError) as error:
        raise MessiahsError(f"{path}: the module's settings cannot be read: {error}") from error


def save_settings(settings: ModuleSettings, path: Path) -> None:
    """Write a settings file atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(settings, enc_hook=str)), mode=0o600)


def _from_text(wanted: type, value: object) -> object:
    assert wanted is Path
    return Path(str(value))
