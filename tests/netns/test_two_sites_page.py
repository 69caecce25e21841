"""The page for two administrators, typed as it stands: each command on its host, behind the firewalls of two sites.

Hosts have names, folders and network namespaces of their own. What a page cannot do is done here: the firewalls are
those of walled.py, `scp` and `ssh` reach the hosts of the own site, the roots are sent from one site to the other, and
`nohup` leaves a file when a module ends, since a loop of the page would wait for ever then.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from messiahs.cli.federation.deployment import federation_directory
from messiahs.cli.federation.temporary import remove_tasks
from messiahs.daemon.process.pid_files import end_modules
from tests.live.conftest import ROOT
from tests.netns.walled import Wall, Walled, walled
from tests.waiting import eventually

pytestmark = pytest.mark.netns

PAGE: Final = ROOT / "docs" / "two-sites.md"
WALLS: Final = {
    "north": Wall(hosts=("pact", "north", "physics", "chemistry"), opened="pact", has_nat=True),
    "south": Wall(hosts=("door", "south", "biology")),
}
_STEP: Final = re.compile(
    r"^On (?P<hosts>`[^\n]*`):\n\n```sh\n(?P<commands>.*?)^```$|^<!-- send: (?P<sent>[^\n]*) -->$",
    re.MULTILINE | re.DOTALL,
)
_ENTER: Final = 'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'
_SCP: Final = """#!/bin/sh
place() { case "$1" in *:*) echo "{homes}/${1%%:*}/${1#*:}" ;; *) echo "$1" ;; esac; }
[ "$1" = -r ] && shift
exec cp -r "$(place "$1")" "$(place "$2")"
"""
_SSH: Final = """#!/bin/sh
cd "{homes}/$1" && shift && exec sh -c "$*"
"""
_NOHUP: Final = f"""#!/bin/sh
{shutil.which("nohup")} "$@"
touch "$HOME/ended"
"""
_HANG_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The hosts of both sites: each has a folder of its own in `homes`."""

    network: Walled
    homes: Path

    def run(self, host: str, commands: str) -> str:
        """Type commands at a host, and return what they print."""
        site = next(site for site, wall in WALLS.items() if host in wall.hosts)
        enter = ["nsenter", f"--net=/run/netns/{self.network.netns(host)}", "unshare", "-m", "-u", "sh", "-c", _ENTER]
        command = [*enter, "sh", str(self.network.hosts_file(site)), host, "bash", "-euo", "pipefail", "-c", commands]
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("MESSIAHS_", "XDG_"))}
        path = f"{self.homes}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        home = self.homes / host
        out, err = (self.network.folder / stream for stream in ("out", "err"))
        with out.open("w") as stdout, err.open("w") as stderr:
            shell = subprocess.Popen(
                command,
                cwd=home,
                env={**kept, "HOME": str(home), "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
        try:
            eventually(lambda: shell.poll() is not None or self._ended(), commands, seconds=_HANG_SECONDS)
        finally:
            shell.kill()
        assert not self._ended(), f"{host}: {commands}\n{self._ended()}"
        assert shell.wait() == 0, f"{host}: {commands}\n{out.read_text()}\n{err.read_text()}"
        assert "Traceback" not in err.read_text()
        return out.read_text()

    def _ended(self) -> str:
        """Return the hosts whose modules have ended, for which a command could wait for ever, and what they printed."""
        folders = [ended.parent for ended in self.homes.glob("*/ended")]
        return "\n".join(f"{folder.name}: {(folder / 'module.out').read_text()}" for folder in folders)

    def send(self, sender: str, source: str, receiver: str, target: str, /) -> None:
        """Carry a file from one site to the other."""
        (self.homes / receiver / target).write_bytes((self.homes / sender / source).read_bytes())


@pytest.fixture
def hosts(tmp_path: Path, short_folder: Path) -> Iterator[Hosts]:
    """Make the hosts, on which nothing runs yet."""
    homes = short_folder
    names = [host for wall in WALLS.values() for host in wall.hosts]
    for name in (*names, "bin"):
        (homes / name).mkdir()
    for name, script in (("scp", _SCP), ("ssh", _SSH), ("nohup", _NOHUP)):
        (homes / "bin" / name).write_text(script.replace("{homes}", str(homes)))
        (homes / "bin" / name).chmod(0o755)
    with walled(WALLS, tmp_path) as network:
        try:
            yield Hosts(network=network, homes=homes)
        finally:
            for name in names:
                end_modules(federation_directory(homes / name / "state", "pact"))
                remove_tasks(homes / name / "state")


def test_two_administrators_who_follow_the_page_share_their_machines(hosts: Hosts) -> None:
    printed: dict[str, str] = {}
    for step in _STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["sent"]:
            hosts.send(*step["sent"].split())
            continue
        for host in re.findall("`(.*?)`", step["hosts"]):
            printed[host] = printed.get(host, "") + hosts.run(host, step["commands"])
    assert set(printed) == {host for wall in WALLS.values() for host in wall.hosts}
    assert "a letter from the south\nread in the north\nA LETTER FROM THE SOUTH\n" in printed["biology"]
    assert printed["biology"].endswith("after the incident\n")
    assert re.search(r"pact +parent .*shut.*incident 7", printed["door"])
    # The audit log names the own user, and the pseudonym of the other site's.
    crossed = [line.split() for line in printed["south"].splitlines()[1:]]
    assert {(line[3], line[4]) for line in crossed} >= {("in", "tasks"), ("out", "tasks")}, crossed
    # The north reads the name of the border alone.
    assert "south" in printed["chemistry"]
    assert "biology" not in printed["chemistry"]
    # Nobody has tried to begin a connection with the site that admits none.
    assert hosts.network.counted("south", "knocked") == 0
    assert hosts.network.counted("north", "admitted") > 0
