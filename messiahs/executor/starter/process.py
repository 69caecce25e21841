"""The starter's process, from its arguments to its end.

Everything is imported, opened and bound before the starter gives up root, because the tasks' account may not be able to
read the interpreter.
"""

import argparse
import fcntl
import gc
import os
import resource
import signal
import socket
import sys
from pathlib import Path

from messiahs.config.settings import BUBBLEWRAP, PROCESS, SANDBOX
from messiahs.core.model.usage import Containment
from messiahs.executor.linux.kernel import adopt_orphans, boot_id, die_with_parent
from messiahs.executor.linux.processes import identity_of
from messiahs.executor.protocol.frames import PROTOCOL, Hello
from messiahs.executor.protocol.identity import LOCK_FILE, NO_SANDBOX, SOCKET, record_identity
from messiahs.executor.starter.containment import NoSandboxError, contain
from messiahs.executor.starter.journal import Journal
from messiahs.executor.starter.runner import Runner
from messiahs.executor.starter.serve import Server
from messiahs.executor.starter.spawn import TERMINAL_SIGNALS
from messiahs.executor.starter.watchdog import Watch

ALREADY_RUNNING = 3
_ISOLATIONS = ("", PROCESS, SANDBOX, BUBBLEWRAP)


def serve(watch: Watch) -> int:
    """Run as the starter of a module; exit code 3 if it already has one."""
    options = _options()
    _limit_files(options.open_files, options.most_open_files)
    os.umask(0o077)
    os.chdir(options.directory)
    lock = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ALREADY_RUNNING
    # Within a namespace, /proc still shows the number by which the daemon knows this process, at first.
    identity = identity_of(int(os.readlink("/proc/self")))  # noqa: PTH115 - a name, not a path
    assert identity is not None
    record_identity(Path(), identity)
    listener = _bound_socket()
    journal, daemon, boot = Journal(Path()), os.geteuid(), boot_id()
    try:
        contained = contain(options)
    except NoSandboxError as error:
        sys.stderr.write(f"{error}\n")
        return NO_SANDBOX
    _tie_lives()
    os.umask(0o022)
    _block_signals()

    runner = Runner(pool=contained.pool, journal=journal, tasks=contained.tasks, boot=boot)
    runner.notes_processes = os.getpid() != 1
    runner.watch = watch
    degraded = "; ".join(filter(None, (options.degraded, contained.degraded)))
    runner.containment = Containment(isolation=contained.isolation, lacks=degraded)
    hello = Hello(
        protocol=PROTOCOL,
        pid=identity.pid,
        attempts_root=options.attempts,
        degraded=degraded,
        has_rebooted=runner.recover(),
        uid=contained.accounts[0][0],
        accounts=contained.accounts,
        isolation=contained.isolation,
        maps_accounts=True,
        narrows_networks=True,
        shows_environments=True,
        has_terminals=True,
        shows_devices=True,
    )
    # The starter's objects have no cycles; collecting garbage among thousands of waiting attempts wastes time.
    gc.freeze()
    gc.set_threshold(100_000)
    listener.listen()
    Server(listener=listener, runner=runner, hello=hello, owner=daemon, alone_ns=options.alone_ns).run()
    return 0


def _limit_files(files: int | None, most_files: int | None) -> None:
    """Limit how many files each process that is started from now on may open, and how far it may raise that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if most_files is None else min(hard, most_files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft if files is None else files, most), most))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="messiahs-starter")
    parser.add_argument("--directory", required=True, help="the starter's own files")
    parser.add_argument("--attempts", required=True, help="the folders of attempts")
    parser.add_argument("--programs", required=True, help="where the starter finds its own programs, as in PATH")
    parser.add_argument("--isolation", default="", choices=_ISOLATIONS, help="how tasks are contained")
    parser.add_argument("--task-uids", required=True, help="FIRST-LAST: the accounts of tasks, for a starter of root")
    parser.add_argument("--network", required=True, help="what tasks in sandboxes reach")
    parser.add_argument("--show", action="append", default=[], help="a folder that tasks in sandboxes see")
    parser.add_argument("--hide", action="append", default=[], help="a folder of the module that tasks never see")
    parser.add_argument("--files", help="where inputs are")
    parser.add_argument("--degraded", default="", help="why it has no process namespace")
    parser.add_argument("--namespace", action="store_true", help="be the init of a process namespace")
    parser.add_argument("--alone-ns", required=True, type=int, help="how long it stays without a daemon and tasks")
    parser.add_argument("--open-files", type=int, help="how many files a task may open")
    parser.add_argument("--most-open-files", type=int, help="how far it may raise that")
    return parser.parse_args()


def _bound_socket() -> socket.socket:
    """Bind under a relative name, because a full path may be too long for a socket."""
    Path(SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(SOCKET)
    return listener


def _tie_lives() -> None:
    """Tie the tasks' lives to the starter's."""
    if os.getpid() == 1:
        die_with_parent()
    else:
        adopt_orphans()


def _block_signals() -> None:
    """Block SIGTERM until the loop handles it. Signals from a terminal are ignored here, but not in tasks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
