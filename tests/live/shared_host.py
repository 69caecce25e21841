"""A host of its own for a test: a mount namespace with its own /etc, /home, /run and /var/lib, and three people."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.commands import Command
from tests.waiting import PATIENCE_SECONDS

ROOT: Final = Path(__file__).parents[2]
_NEEDED: Final = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
"""What everybody has to read in order to run `messiahs`."""
_BEGIN: Final = """
set -e
folder=$1; shift
for place; do
    mkdir -p $folder/kept$place
    mount --bind $place $folder/kept$place
done
for closed in $CLOSED; do mount -t tmpfs -o mode=755 none $closed; done
for place; do
    mkdir -p $place
    mount --bind $folder/kept$place $place
done
if [ -c /dev/net/tun ]; then
    # Whatever its mode is here, it is the usual one there.
    mount -t tmpfs -o mode=755 none /dev/net
    mknod -m 666 /dev/net/tun c 10 200
fi
mkdir $folder/etc
cp -a /etc/. $folder/etc
mount --bind $folder/etc /etc
for empty in /run /var/lib /home; do mount -t tmpfs -o mode=755 none $empty; done
groupadd hpc
for person in ann bob eve; do useradd --no-log-init --create-home --user-group $person; done
for member in ann bob; do usermod --append --groups hpc $member; done
chmod 700 /home/*
echo ready
exec sleep infinity
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host; `process` is one in its namespace."""

    process: int

    def run(self, account: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a `messiahs` command as an account of the host, with its home and groups, to the end."""
        return self._run(account, (sys.executable, "-m", "messiahs.cli.main", *words), environment)

    def shell(self, account: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script as an account of the host."""
        return self._run(account, ("bash", "-euo", "pipefail", "-c", script), {})

    def path(self, path: str) -> Path:
        """Return a path of the host as this process sees it."""
        return Path(f"/proc/{self.process}/root{path}")

    def _run(
        self, account: str, command: tuple[str, ...], environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        groups = (f"--regid={account}", "--clear-groups") if account.isdecimal() else self._groups(account)
        become = ("setpriv", f"--reuid={account}", *groups)
        home = "/root" if account == "root" else f"/home/{account}"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ("nsenter", "-t", str(self.process), "-m", *become, *command),
            env={"PATH": path, "HOME": home, "TMPDIR": home, "PYTHONPATH": str(ROOT), **environment},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    def _groups(self, account: str) -> tuple[str, str]:
        accounts = (line.split(":") for line in self.path("/etc/passwd").read_text().splitlines())
        gid = next(gid for name, _, _, gid, *_ in accounts if name == account)
        return f"--regid={gid}", "--init-groups"


@contextmanager
def shared_host(folder: Path) -> Iterator[Host]:
    """Make the host, on which everybody can read what is needed; whoever starts daemons in it ends them.

    `ann` and `bob` are in the group `hpc`, and `eve` is not.
    """
    behind = {needed: _closed(needed) for needed in _NEEDED}
    kept = [str(needed) for needed, closed in behind.items() if closed is not None]
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _BEGIN, "sh", str(folder), *kept]
    environment = {**os.environ, "CLOSED": " ".join({str(each) for each in behind.values() if each is not None})}
    with Command(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield Host(process=process.pid)
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)


@contextmanager
def shared_installation(folder: Path, topology: str, *, prepare: str = "true") -> Iterator[Host]:
    """Make the host, on which root runs the modules of a topology, with the federation `shared`, for everybody.

    Before that, root runs a script to `prepare` it.
    """
    with shared_host(folder) as made:
        prepared = made.shell("root", prepare)
        assert prepared.returncode == 0, prepared.stderr
        made.path("/var/lib/shared.yaml").write_text(topology)
        began = made.run(
            "root",
            *("up", "/var/lib/shared.yaml", "--detach", "--wait", "120"),
            *("--state", "/var/lib/messiahs", "--sockets", "/run/messiahs"),
        )
        try:
            assert began.returncode == 0, began.stderr
            yield made
        finally:
            ended = made.run("root", "down", "/var/lib/shared.yaml", "--state", "/var/lib/messiahs")
        assert ended.returncode == 0, ended.stderr


def _closed(needed: Path) -> Path | None:
    """Return the outermost folder on the way to a path that other accounts cannot enter."""
    return next((each for each in reversed((needed, *needed.parents)) if not each.stat().st_mode & 0o001), None)
