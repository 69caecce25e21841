"""`python -m messiahs.executor.starter`: how a daemon starts the starter; not meant for people.

Everything is imported, opened and bound before the starter gives up root, because the account of the tasks may not
even reach the interpreter.
"""

import argparse
import fcntl
import gc
import os
import signal
import socket
import sys
from pathlib import Path

from messiahs.executor.frames import PROTOCOL, Hello
from messiahs.executor.layout import Account
from messiahs.executor.processes import identity_of
from messiahs.executor.starter.identity import LOCK_FILE, SOCKET, note_identity
from messiahs.executor.starter.journal import Journal
from messiahs.executor.starter.kernel import adopt_orphans, boot_id, die_with_parent, give_up_new_privileges
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.runner import Runner
from messiahs.executor.starter.serve import Server
from messiahs.executor.starter.spawn import Spawner
from messiahs.executor.starter.strays import Children

ALREADY_RUNNING = 3


def main() -> int:
    """Become the starter of a module, unless it has one (exit code 3)."""
    options = _options()
    os.umask(0o077)
    os.chdir(options.directory)
    lock = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ALREADY_RUNNING
    # Behind a namespace /proc still tells the number by which the daemon knows this process.
    identity = identity_of(int(os.readlink("/proc/self")))  # noqa: PTH115 - a name, not a path
    assert identity is not None
    note_identity(Path(), identity)
    listener = _bound_socket()
    journal, children, owner, boot = Journal(Path()), Children(), os.geteuid(), boot_id()
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    account = Account(name=options.user, uid=options.uid, gid=options.gid)
    _become(account)
    os.umask(0o022)
    _block_signals()

    pool = Pool(Path(options.attempts))
    spawner = Spawner(user=account.name, path=options.path, nothing=nothing)
    runner = Runner(pool=pool, journal=journal, spawner=spawner, children=children, boot=boot)
    runner.notes_processes = os.getpid() != 1
    hello = Hello(
        protocol=PROTOCOL,
        pid=identity.pid,
        attempts_root=options.attempts,
        degraded=options.degraded,
        has_rebooted=runner.recover(),
    )
    # What it holds has no cycles: looking for them among thousands of waiting attempts is time lost.
    gc.freeze()
    gc.set_threshold(100_000)
    listener.listen()
    Server(listener=listener, runner=runner, hello=hello, owner=owner).run()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="messiahs-starter")
    parser.add_argument("--directory", required=True, help="the starter's own files")
    parser.add_argument("--attempts", required=True, help="the folders of attempts")
    parser.add_argument("--user", required=True)
    parser.add_argument("--uid", required=True, type=int)
    parser.add_argument("--gid", required=True, type=int)
    parser.add_argument("--path", required=True, help="PATH of the tasks")
    parser.add_argument("--degraded", default="")
    return parser.parse_args()


def _bound_socket() -> socket.socket:
    """Bind under a name relative to the present folder: a full path may be too long for a socket."""
    Path(SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(SOCKET)
    return listener


def _become(account: Account) -> None:
    """Take the tasks' account for good, and tie the life of the tasks to that of the starter."""
    if os.geteuid() == 0:
        assert account.uid != 0
        os.setgroups([account.gid])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        give_up_new_privileges()
    if os.getpid() == 1:
        die_with_parent()
    else:
        adopt_orphans()


def _block_signals() -> None:
    """Keep SIGTERM waiting until the loop asks for it; what a terminal sends concerns nobody here, but for tasks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
