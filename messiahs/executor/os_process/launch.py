"""Finding, starting and ending a module's starter."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from messiahs.config.device_files import Devices
from messiahs.config.settings import BUBBLEWRAP, DEFAULT_TASK_UIDS, PROCESS
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import TASK_PATH
from messiahs.executor.linux.processes import ProcessIdentity, is_alive, kill, signal_if, wait_until_gone
from messiahs.executor.linux.strays import all_below, belongs_to
from messiahs.executor.protocol.identity import LOG_FILE, NO_SANDBOX, SOCKET, recorded_identity
from messiahs.executor.protocol.layout import ATTEMPTS, FALLBACK, prepare_attempts_root, task_account

_AS_ROOT = ("unshare", "--pid", "--fork", "--kill-child")
_AS_USER = ("unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child")
_READY_SECONDS = 20.0
_GONE_NS = 15_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterSettings:
    """Place of a starter, and the accounts of its tasks.

    `directory` has its socket, journal and log, and the folders of tasks if their account can reach it; otherwise these
    are below `fallback`. `files` has the inputs of tasks, named by their hashes. A starter that is silent for
    `silence_ns` is ended with its tasks; one that has had no daemon and no task for `alone_ns` ends. `open_files` is
    how many files a task may open; None: as many as this process. It can raise that up to `most_open_files`; None: as
    far as this process can. Without `uses_namespace`, the starter does not try to
    be the init of a process namespace. With `isolation`, tasks are ordinary processes or in sandboxes, the own ones or
    those of bubblewrap; empty: in own ones if they can be set up, else processes. Sandboxes have a network (`none`,
    `loopback`, `outbound` or `host`), and see the folders `shown` of the machine; empty: all but those of
    users and services (with bubblewrap: those of the system). If root starts it, a task in an own one has an account of
    `task_uids`, and all others have one together; else they have that of this process.
    Neither those of bubblewrap nor tasks with an account of the host see the folders `hidden` and those of the module.
    `counted` are the kinds of counted things of the machine; tasks that have none of a kind are told so. In sandboxes,
    tasks find the `devices` of the things that are assigned to them, and no others.
    """

    directory: Path
    silence_ns: int = 180_000_000_000
    alone_ns: int = 60_000_000_000
    fallback: Path = FALLBACK
    uses_namespace: bool = True
    files: Path | None = None
    open_files: int | None = None
    most_open_files: int | None = None
    isolation: str = PROCESS
    task_uids: tuple[int, int] = DEFAULT_TASK_UIDS
    network: str = "loopback"
    shown: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    devices: Devices = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


async def connect(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Connect to the starter in a directory; None if there is none."""
    try:
        folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Through a descriptor, because the path of a socket must be short.
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{SOCKET}")
    except (FileNotFoundError, ConnectionError):
        return None
    finally:
        os.close(folder)


async def launch(settings: StarterSettings) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Start a starter and connect to it, after ending the remains of an earlier one.

    Raises `ExecutorError`.
    """
    settings.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    account = task_account(settings.task_uids)
    await end_starter(settings.directory)
    attempts_root = prepare_attempts_root(settings.directory, account, fallback=settings.fallback)
    await asyncio.to_thread(_end_leftovers, attempts_root)
    process = _detached(await _arguments(settings, attempts_root), settings.directory / LOG_FILE)
    deadline = time.monotonic() + _READY_SECONDS
    while process.returncode is None and time.monotonic() < deadline:
        connection = await connect(settings.directory)
        if connection is not None:
            return connection
        await asyncio.sleep(0.01)
    if process.returncode == NO_SANDBOX:
        why = (settings.directory / LOG_FILE).read_text(errors="replace").splitlines()[-1]
        raise ExecutorError(f"tasks cannot be run in sandboxes here: {why}", transient=False)
    await end_starter(settings.directory)
    raise ExecutorError(f"the starter does not start: see {settings.directory / LOG_FILE}", transient=True)


def programs_path(uid: int) -> str:
    """Return where the starter of a daemon with this account finds its own programs; tasks have `TASK_PATH`."""
    return TASK_PATH if uid == 0 else os.environ.get("PATH", TASK_PATH)


async def _arguments(settings: StarterSettings, attempts_root: Path) -> list[str]:
    arguments = [sys.executable, "-P", "-X", "utf8", "-m", "messiahs.executor.starter"]
    arguments += ["--directory", str(settings.directory), "--attempts", str(attempts_root)]
    # Bubblewrap finds its own processes in /proc only in the namespace of /proc. Each box ends with the starter.
    if settings.isolation != BUBBLEWRAP:
        degraded = await asyncio.to_thread(_why_no_namespace, uses_namespace=settings.uses_namespace)
        arguments += ["--degraded", degraded] if degraded else ["--namespace"]
    arguments += ["--programs", programs_path(os.geteuid()), "--alone-ns", str(settings.alone_ns)]
    arguments += [] if settings.open_files is None else ["--open-files", str(settings.open_files)]
    arguments += [] if settings.most_open_files is None else ["--most-open-files", str(settings.most_open_files)]
    arguments += ["--isolation", settings.isolation, "--network", settings.network]
    arguments += ["--task-uids", "-".join(map(str, settings.task_uids))]
    arguments += [part for folder in settings.shown for part in ("--show", folder)]
    arguments += [part for folder in settings.hidden for part in ("--hide", folder)]
    # The folder above: everybody can read these arguments, and nobody else may know the name of that of the contents.
    arguments += [] if settings.files is None else ["--files", str(settings.files.parent)]
    return arguments


async def end_starter(directory: Path) -> None:
    """Kill the recorded starter, if that process still runs, and wait until it and its namespace are gone."""
    identity = recorded_identity(directory)
    if identity is not None and is_alive(identity):
        kill(identity)
        await wait_for_end(identity, _GONE_NS)


async def wait_for_end(identity: ProcessIdentity, timeout_ns: int) -> bool:
    """Wait until a process is gone; False after the timeout."""
    return await asyncio.to_thread(wait_until_gone, identity, timeout_ns)


def _detached(arguments: list[str], log_file: Path) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one; while this one lives, a thread reaps it."""
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            arguments, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    threading.Thread(target=process.wait, name="starter", daemon=True).start()
    return process


def _why_no_namespace(*, uses_namespace: bool) -> str:
    """Return why a process cannot be the init of its own namespace; empty if it can."""
    if not uses_namespace:
        return "switched off: a task that leaves its process group may outlive the starter"
    prefix = _AS_ROOT if os.geteuid() == 0 else _AS_USER
    try:
        tried = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no process namespace: {error}"
    if tried.returncode == 0:
        return ""
    return f"no process namespace: {tried.stderr.decode(errors='replace').strip()}"


def _end_leftovers(attempts_root: Path) -> None:
    """Kill every process that belongs to the folder of an attempt, because no starter supervises it any more."""
    prefix = os.fsencode(f"{attempts_root}/{ATTEMPTS}/")
    deadline = time.monotonic() + _GONE_NS / 1e9
    while (found := list(all_below(prefix))) and time.monotonic() < deadline:
        for pid in found:
            signal_if(pid, signal.SIGKILL, partial(_is_below, pid, prefix))
        time.sleep(0.01)


def _is_below(pid: int, prefix: bytes) -> bool:
    return belongs_to(b"%d" % pid, prefix) is not None
