"""A program: becomes an account for good, and then a command in its shell. Nothing of the daemon is left in it.

It is run by its path, without the packages of the daemon, as root or as the account itself.
"""

import os
import pwd
import resource
import signal
import sys
from contextlib import suppress

_FAILED = 125
_OPEN_FILES = 1_024
_FIRST_VICTIM = b"1000"


def main() -> None:
    """Run a command, the second argument, as the account whose number is the first one."""
    uid, command = int(sys.argv[1]), sys.argv[2]
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        sys.exit(f"this machine has no account with the number {uid}")
    # Where memory is short, it ends before the module does, and its commands inherit that.
    with suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, _FIRST_VICTIM)
        os.close(score)
    if os.geteuid() != uid:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(uid, uid, uid)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_FILES, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o022)
    # Python ignores these two, and a program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(account.pw_dir)
    except OSError:
        os.chdir("/")
    environment = {**os.environ, "HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}
    os.execve("/bin/sh", ["sh", "-c", command], environment)  # noqa: S606 - the user's own command


if __name__ == "__main__":
    try:
        main()
    except OSError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(_FAILED)
