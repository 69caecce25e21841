"""`messiahs certificate show` of an account that cannot read everything."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from messiahs.cli.federation.certificates import make_certificates

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
OPEN, CLOSED = 0o755, 0o700
_NOBODY: Final = 65_534
_SCRIPT: Final = f"""
import os, sys
from messiahs.cli import main
import messiahs.cli.certificate.commands, messiahs.cli.certificate.places, messiahs.cli.certificate.showing
os.setgid({_NOBODY}); os.setuid({_NOBODY})
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.fixture
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the certificates of a host whose folders all can enter."""
    directory = tmp_path_factory.mktemp("base") / "state" / "campus"
    directory.mkdir(parents=True)
    make_certificates(directory, ["cs"])
    for parent in (directory, *directory.parents):
        if parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(OPEN)
    return directory


def shown(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _SCRIPT, "certificate", "show", "--state", str(directory.parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("tls", "module", "names", "closed"),
    [
        (OPEN, OPEN, ["campus root", "cs"], ["tls/issued.json"]),
        (OPEN, CLOSED, ["campus root"], ["cs", "tls/issued.json"]),
        (CLOSED, OPEN, ["cs"], ["tls"]),
        (CLOSED, CLOSED, [], ["cs", "tls"]),
    ],
)
def test_what_can_be_read_is_shown_and_who_can_read_the_rest_is_said(
    campus: Path, tls: int, module: int, names: list[str], closed: list[str]
) -> None:
    (campus / "tls").chmod(tls)
    (campus / "cs").chmod(module)
    listed = ", ".join(str(campus / each) for each in closed)
    text = f"messiahs: you have no permission to read {listed}: run this command as root\n"
    done = shown(campus)
    assert (done.returncode, done.stderr) == (1, text)
    assert bool(done.stdout) is bool(names)
    document = shown(campus, "--json")
    assert (document.returncode, document.stderr) == (1, text)
    found = json.loads(document.stdout)["certificates"]
    assert [(each["name"], each["state"], each["warning"]) for each in found] == [(name, "valid", "") for name in names]


@pytest.mark.processes
def test_the_account_that_owns_the_files_is_named(campus: Path) -> None:
    (campus / "tls").chmod(CLOSED)
    os.chown(campus / "cs", 54_321, -1)
    (campus / "cs").chmod(CLOSED)
    text = f"read {campus / 'cs'}, {campus / 'tls'}: run this command as uid 54321, or as root\n"
    assert shown(campus).stderr.endswith(text)
