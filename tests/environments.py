"""Virtual environments of the system's Python, which sandboxes see, unlike that of these tests."""

import json
import subprocess
from pathlib import Path

import pytest

from messiahs.executor.images.environments import ABOUT_NAME, Environment
from tests.oci_images import Entry, folder, layer_of

SYSTEM_PYTHON = Path("/usr/bin/python3")


def virtual_environment(path: Path, *, says: str = "of the environment") -> Path:
    """Make an environment with a module `brought`, and return its folder."""
    if not SYSTEM_PYTHON.exists():
        pytest.skip("needs the system's Python")
    made = subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", path], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"needs the module venv of the system's Python: {made.stderr.decode()}")
    (packages,) = path.glob("lib/python3*/site-packages")
    (packages / "brought.py").write_text(f"TEXT = {says!r}\n")
    return path


def environment_of(*entries: Entry, about: Environment | None = None, **stated: object) -> bytes:
    """Return an archive that is made by hand; `stated` are parts of what it says of itself."""
    said = {"path": "/opt/of-tests/environment", "variable": "VIRTUAL_ENV", **stated}
    return layer_of(Entry(name=ABOUT_NAME, content=json.dumps(said).encode()), folder("tree"), *entries)
