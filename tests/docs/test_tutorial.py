"""Every file and every command of the tutorial gives the shown result."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-policies.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?( append)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)


def _said_by(command: str, place: Path) -> str:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return done.stdout


def test_a_reader_who_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    commands = 0
    for kind, name, append, body in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "console":
            for command, shown in _COMMAND.findall(body):
                assert _said_by(command, tmp_path) == shown, command
                commands += 1
            continue
        file = tmp_path / name
        before = file.read_text(encoding="utf-8") if append else ""
        file.write_text(before + body, encoding="utf-8")
    assert commands > 10
    assert len(list(tmp_path.iterdir())) == 3
