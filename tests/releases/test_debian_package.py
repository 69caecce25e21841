"""The Debian package: built by its one command, installed by dpkg on a copy of this host, used, and removed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
_MADE_OF = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "messiahs", "policies", "topologies", "docs")
_ON_A_COPY_OF_THE_HOST = """
set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || exit 77
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
cp "$2" "$1/root/messiahs.deb"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$1/root" bash -euo pipefail -c "$3"
"""
_INSTALL_USE_REMOVE = """
cd /
dpkg --install messiahs.deb
messiahs version
test -e /usr/share/man/man1/messiahs-run.1.gz
grep -q _messiahs_completion /usr/share/bash-completion/completions/messiahs
messiahs demo
dpkg --remove messiahs
test ! -e /usr/bin/messiahs
test ! -e /usr/lib/messiahs
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("dpkg-deb") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("not a Debian system")
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], check=False, capture_output=True).returncode:
        pytest.skip("needs the package python3-venv")
    folder = tmp_path_factory.mktemp("package")
    # A copy, so that the build leaves nothing in the tree.
    for name in (*_MADE_OF, ".ci"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    built = subprocess.run([folder / ".ci" / "deb", folder], check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (path,) = built.stdout.split()
    return Path(path)


def test_the_package_is_installed_runs_the_demo_and_leaves_nothing_behind(package: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    command = ("unshare", "--mount", "sh", "-c", _ON_A_COPY_OF_THE_HOST, "sh", tmp_path, package, _INSTALL_USE_REMOVE)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"no copy of the host: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "every file is correct" in done.stdout


def test_the_package_names_no_folder_of_the_build(package: Path) -> None:
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
    assert bytes(package.parent) not in content
    assert b"#!/usr/lib/messiahs/bin/python\n" in content
