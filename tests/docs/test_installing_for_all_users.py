"""The block "Install it" of docs/shared-installation.md, on a copy of this host, with a wheel of this tree."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
_PYTHON = "/usr/bin/python3"
_MADE_OF = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "messiahs", "policies", "topologies", "docs")
_NO_COPY = 77
_ON_A_COPY_OF_THE_HOST = f"""
set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
chmod 755 "$1" "$1/upper"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || exit {_NO_COPY}
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
rm -rf "$1/root/opt/messiahs" "$1/root/usr/local/bin/messiahs"
cp -r "$2" "$1/root/wheels"
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
    PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels chroot "$1/root" bash -euo pipefail -c "$3"
"""
_USED_BY_NOBODY = """
cd /
messiahs version
setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent messiahs version
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with wheels of this tree and of all that it needs, for the Python of the system."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a copy of the host")
    wanted = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
    if (
        not Path(_PYTHON).exists()
        or subprocess.run([_PYTHON, "-c", wanted], check=False, capture_output=True).returncode
    ):
        pytest.skip(f"needs {_PYTHON} of 3.11 or later, with the package python3-venv")
    folder = tmp_path_factory.mktemp("wheels")
    # A copy, so that the build leaves nothing in the tree.
    (folder / "tree").mkdir()
    for name in _MADE_OF:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / "tree" / name)
    subprocess.run([_PYTHON, "-m", "venv", folder / "venv"], check=True, capture_output=True)
    build = (folder / "venv" / "bin" / "pip", "wheel", "--wheel-dir", folder / "wheels", folder / "tree")
    built = subprocess.run(build, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / "wheels"


def test_root_installs_the_program_for_all_accounts(wheels: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "shared-installation.md").read_text(encoding="utf-8")
    block = page.split("## Install it\n", 1)[1].split("\n```\n", 2)[1]
    assert "pip install messiahs" in block
    script = block + _USED_BY_NOBODY
    command = ("unshare", "--mount", "sh", "-c", _ON_A_COPY_OF_THE_HOST, "sh", tmp_path, wheels, script)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == _NO_COPY:
        pytest.skip(f"no copy of the host: {done.stderr}")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[-2:]
    assert first == second
    assert first.startswith("messiahs ")
