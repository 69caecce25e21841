"""The tables of docs/tasks.md, compared with what a task of a member of an array finds in a sandbox."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, brought_up

pytestmark = pytest.mark.live

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
_TOPOLOGY = """
version: 1
federation: seen
systems:
  cage: {machine: {slots: 1, isolation: sandbox}}
"""


@pytest.fixture(scope="module")
def cage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    folder = tmp_path_factory.mktemp("seen")
    topology = folder / "seen.yaml"
    topology.write_text(_TOPOLOGY)
    made = Federation(topology=topology, name="seen", state=folder / "state", module="cage")
    with brought_up(made):
        yield made


def rows(heading: str) -> dict[str, str]:
    """Return what the first table below a heading of the page says of each name in its first column."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = dict[str, str]()
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", section, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", row[0]), row[1])
    return found


def seen(cage: Federation, *command: str) -> list[str]:
    array = cage.submit("--array", "1-1", "--env", "MESSIAHS_ATTEMPT=9", "--", *command)
    assert cage.run("wait", array).returncode == 0, cage.run("explain", array).stdout
    return cage.run("logs", f"{array}.1").stdout.splitlines()


def test_a_task_has_the_variables_of_the_page_and_no_others(cage: Federation) -> None:
    found = dict(line.split("=", 1) for line in seen(cage, "env"))
    said = rows("Variables")
    # Those come with an environment, with modules, or with the trace of the submitter.
    others = {"VIRTUAL_ENV", "CONDA_PREFIX", "MESSIAHS_ENV_MODULES", "TRACEPARENT", "TRACESTATE"}
    assert said.keys() - found.keys() == others
    assert found.keys() <= said.keys()
    assert f"`{found['PATH']}`" in said["PATH"]
    assert said["LANG"] == f"`{found['LANG']}`"
    assert found["HOME"] == found["TMPDIR"] == "/task/work"
    assert (found["MESSIAHS_ATTEMPT"], found["MESSIAHS_ARRAY_INDEX"]) == ("1", "1")


def test_a_task_has_the_variables_of_a_file_and_those_of_its_own_before_them(cage: Federation, tmp_path: Path) -> None:
    file = tmp_path / "site.env"
    file.write_text("SEED='4 2' # chosen\nMODE=slow\n")
    done = cage.run("run", "--env-file", str(file), "--env", "MODE=fast", "--", "sh", "-c", "echo $SEED $MODE")
    assert (done.returncode, done.stdout) == (0, "4 2 fast\n")


def test_the_folders_are_as_the_page_says(cage: Federation) -> None:
    said = rows("Folders")
    script = 'for each; do echo "$each $(ls -A $each | wc -l) $(touch $each/x 2>/dev/null && echo writable)"; done; pwd'
    *lines, work = seen(cage, "sh", "-c", script, "sh", *said)
    assert work == "/task/work"
    entries = {line.split()[0]: (int(line.split()[1]), line.endswith("writable")) for line in lines}
    assert entries.keys() == said.keys()
    for folder, text in said.items():
        count, is_writable = entries[folder]
        assert is_writable == text.startswith(("its own (", "its own, ")), folder
        if text.startswith("empty"):
            assert count == 0, folder
        if text.startswith("read-only"):
            assert count > 0, folder
    devices = set(seen(cage, "ls", "/dev"))
    assert set(re.findall(r"`(\w+)`", said["/dev"])) <= devices
    assert devices <= {
        *re.findall(r"`(\w+)`", said["/dev"]),
        "fd",
        "ptmx",
        "pts",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
    }
