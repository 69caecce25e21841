"""The Debian package and the container image: built by one command each, installed, used, and removed.

dpkg installs the package on a copy of this host. The image is built on one that is made of Debian's packages.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from messiahs import __version__

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
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tree, so that builds leave nothing in it."""
    if shutil.which("dpkg-deb") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("not a Debian system")
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], check=False, capture_output=True).returncode:
        pytest.skip("needs the package python3-venv")
    folder = tmp_path_factory.mktemp("tree")
    for name in (*_MADE_OF, ".ci"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def package(tree: Path) -> Path:
    built = subprocess.run([tree / ".ci" / "deb", tree], check=False, capture_output=True, text=True)
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


def test_the_image_has_the_program(tree: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if missing := [program for program in ("podman", "mmdebstrap") if shutil.which(program) is None]:
        pytest.skip(f"needs the package {missing[0]}")
    release = subprocess.run(
        ["sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME"], check=True, capture_output=True, text=True
    ).stdout.strip()
    # Podman takes short paths only.
    with tempfile.TemporaryDirectory(prefix="podman-") as store:
        made = Path(store)
        places = f"--root {store}/root --runroot {store}/run --storage-driver vfs"
        (made / "podman").write_text(f'#!/bin/sh\nexec {shutil.which("podman")} {places} "$@"\n')
        (made / "podman").chmod(0o755)
        (made / "Containerfile").write_text("FROM made\nRUN messiahs version && messiahs topology --help\n")
        bootstrap = (
            "mmdebstrap",
            "--quiet",
            "--variant=apt",
            "--include=python3,util-linux",
            release,
            f"{store}/base.tar",
        )
        environment = {**os.environ, "PATH": f"{store}:{os.environ['PATH']}", "BUILDAH_ISOLATION": "chroot"}
        for command in (
            bootstrap,
            ("podman", "import", f"{store}/base.tar", "base"),
            (str(tree / ".ci" / "image"), "made", "localhost/base"),
            ("podman", "build", store),
        ):
            done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
        assert f"messiahs {__version__}" in done.stdout + done.stderr
