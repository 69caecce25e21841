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
