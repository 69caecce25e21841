"""Fixtures of the executor's tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that an ordinary user can reach, with one for attempts in it."""
    folder = Path(tempfile.mkdtemp(prefix="messiahs-test-"))
    (folder / "tasks").mkdir()
    yield folder
    shutil.rmtree(folder)
