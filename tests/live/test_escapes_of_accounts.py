"""The suites of escapes where a daemon runs as an ordinary account of a host, in boxes of bubblewrap."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.live.shared_host import ROOT, shared_host

pytestmark = pytest.mark.live
_SUITE: Final = f"""
cd {ROOT}
cd tests/contract
suite="test_escapes.py test_escapes_folders.py test_escapes_network.py test_held_files.py test_executor_environments.py"
exec python -m pytest -q -p no:cacheprovider -o addopts= --basetemp ~/escapes -k bubblewrap $suite
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs the package bubblewrap")
def test_a_box_of_an_ordinary_account_withstands_the_escapes_that_one_of_root_withstands(tmp_path: Path) -> None:
    with shared_host(tmp_path) as host:
        done = host.shell("ann", _SUITE)
        assert (done.returncode, " passed" in done.stdout) == (0, True), done.stdout + done.stderr


_SITE: Final = """
version: 1
federation: own
systems:
  mine: {users: everyone, machine: {slots: 1, isolation: bubblewrap, show: [/usr, /etc, /home/ann]}}
"""
_STATE: Final = "--state ~/state"
_ASK: Final = """
import os, socket, sys
for place in ("socks/own", "socks"):
    print(place, os.listdir(place) if os.path.isdir(place) else "is not there")
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect("socks/own/mine.sock")
except OSError as error:
    print(error.strerror)
else:
    print("connected")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs the package bubblewrap")
def test_a_task_is_no_user_of_its_module_although_the_first_start_makes_the_folder_of_sockets(tmp_path: Path) -> None:
    with shared_host(tmp_path) as host:
        host.path("/home/ann/site.yaml").write_text(_SITE)
        host.path("/home/ann/ask.py").write_text(_ASK)
        up = f"messiahs up ~/site.yaml --detach --wait 120 {_STATE} --sockets ~/socks"
        began = host.shell("ann", up)
        try:
            assert began.returncode == 0, began.stderr
            asked = host.shell(
                "ann", f"cd; messiahs run {_STATE} --module mine -- sh -c 'cd /home/ann; python3 ask.py'"
            )
            assert (asked.returncode, asked.stderr) == (0, "")
            assert asked.stdout == "socks/own is not there\nsocks []\nNo such file or directory\n"
        finally:
            ended = host.shell("ann", f"messiahs down ~/site.yaml {_STATE}")
        assert ended.returncode == 0, ended.stderr
