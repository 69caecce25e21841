"""Outputs that somebody exchanges while they are looked for: a task can give its open work folder to such a process."""

import json
import os
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

SEARCH = """
import json, os, sys
from messiahs.executor.starter.output_search import OutputSearch

work, moment, *names = sys.argv[1:]
seen = 0

def exchange(event, _):
    global seen
    if event not in ("open", "os.chmod", "os.listdir", "os.scandir"):
        return
    seen += 1
    if seen == int(moment):
        for name in ("file", "folder"):
            os.rename(f"{work}/out/{name}", f"{work}/aside-{name}")
            os.symlink(f"../../secret/{name}", f"{work}/out/{name}")

sys.addaudithook(exchange)
search = OutputSearch(work, tuple(names))
while not search.go_on(1):
    pass
print(json.dumps([seen, sorted(search.found.files)]))
"""
"""Searches for outputs, and exchanges a file and a folder for links right before the call of the given number."""


def lay_out(root: Path) -> dict[Path, int]:
    """Have a work folder, and beside it what is not its task's, unreadable for its owner; return the modes of that."""
    for folder in ("secret", "work/out"):
        (root / folder / "folder").mkdir(parents=True)
        for name in ("file", "folder/below"):
            (root / folder / name).touch(0o200)
    return {place: place.stat().st_mode for place in (root / "secret").rglob("*")}


@pytest.mark.parametrize("name", ["out", "out/file", "out/folder", "**", "out/*"])
def test_nothing_but_the_tasks_own_files_is_changed_whenever_links_take_their_places(tmp_path: Path, name: str) -> None:
    for moment in count(1):
        root = tmp_path / str(moment)
        secret = lay_out(root)
        command = [sys.executable, "-c", SEARCH, str(root / "work"), str(moment), name]
        seen, files = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert {place: place.stat().st_mode for place in secret} == secret
        if seen < moment:
            # Nobody interfered any more.
            assert files
            return
    pytest.fail("the search has no end")


def test_an_output_that_its_owner_may_not_read_is_made_readable(tmp_path: Path) -> None:
    lay_out(tmp_path)
    subprocess.run([sys.executable, "-c", SEARCH, str(tmp_path / "work"), "0", "out"], check=True, capture_output=True)
    made = [tmp_path / "work/out" / name for name in ("file", "folder/below")]
    assert [stat.S_IMODE(os.lstat(file).st_mode) for file in made] == [0o600, 0o600]
