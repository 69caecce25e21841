"""Keep what a release leaves: `python -m tests.releases.keep COMMIT`, before the next release changes it.

It checks out the commit, builds its wheel, and lets its code write rows and messages (recorded.py). The wheel is the
same each time, compressed as a whole; rows and messages are drawn, and differ. Nothing needs the commit afterwards.
"""

import io
import lzma
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from tests.releases.released import folder_of

ROOT = Path(__file__).parents[2]
_FIRST_DATE = "315532800"
"""1980, the earliest date in a zip file."""


def keep(commit: str) -> Path:
    """Write the folder of the release that a commit is, and return it."""
    with tempfile.TemporaryDirectory() as temporary:
        tree, built = Path(temporary, "tree"), Path(temporary, "built")
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            version = str(tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"])
            folder = folder_of(version)
            folder.mkdir(exist_ok=True)
            environment = {**os.environ, "SOURCE_DATE_EPOCH": _FIRST_DATE, "PYTHONPATH": str(tree)}
            build = ["uv", "build", "--wheel", "--out-dir", str(built)]
            subprocess.run(build, cwd=tree, env=environment, check=True)
            (wheel,) = built.glob("*.whl")
            (folder / f"{wheel.name}.xz").write_bytes(_compressed(wheel))
            record = [sys.executable, str(Path(__file__).parent / "recorded.py"), str(folder)]
            subprocess.run(record, cwd=tree, env=environment, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return folder


def _compressed(wheel: Path) -> bytes:
    """Return a wheel with the same files, compressed together, which takes half of the space."""
    plain = io.BytesIO()
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(plain, "w") as target:
        for each in source.infolist():
            target.writestr(zipfile.ZipInfo(each.filename), source.read(each))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    sys.stdout.write(f"{keep(sys.argv[1])}\n")
