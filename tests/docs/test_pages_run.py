"""Every command in the README and the pages of docs/ runs, in the order of the page."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
_PAGE_SECONDS = 840
"""Less than a test may take, so that a page that hangs is ended with all that it has begun."""
PAGES = ("how-do-i.md", "users.md", "files.md", "administrators.md", "sites.md", "trace.md")
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)

_ANSWERED_ELSEWHERE = {
    "… start a module for all users of a host?": "tests/docs/test_installing_for_all_users.py",
    "… see tasks in the traces of OpenTelemetry?": "tests/live/test_spans.py",
    "… upgrade?": "tests/releases/test_upgrading.py",
    "… work on another machine in a terminal?": "tests/live/test_terminals.py",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder that looks like a checkout to a reader."""
    for folder in ("topologies", "policies"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def _run(script: str, place: Path, *, path: str | None = None) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    path = f"{scripts}:{os.environ['PATH']}" if path is None else path
    environment = {**os.environ, "MESSIAHS_STATE": str(place / "state"), "PATH": path}
    environment.pop("MESSIAHS_MODULE", None)
    command = ["bash", "-euo", "pipefail", "-c", script]
    # Not pipes: what a page that fails has begun would keep them open.
    out, err = place / "page.out", place / "page.err"
    try:
        with (
            out.open("w") as stdout,
            err.open("w") as stderr,
            subprocess.Popen(
                command, cwd=place, env=environment, stdout=stdout, stderr=stderr, start_new_session=True
            ) as shell,
        ):
            try:
                shell.wait(timeout=_PAGE_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
        texts = (each.read_text(encoding="utf-8") for each in (out, err))
        return subprocess.CompletedProcess(command, shell.returncode, *texts)
    finally:
        for topology in (place / "topologies" / "pair.yaml", place / "lab.yaml", place / "mine.yaml"):
            if topology.exists():
                down = [sys.executable, "-m", "messiahs.cli.main", "down", str(topology)]
                subprocess.run(down, env=environment, capture_output=True, check=False)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, place: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert blocks
    done = _run("\n".join(blocks), place)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


def test_each_answer_has_commands_which_run_with_the_page_or_in_another_test() -> None:
    page = (ROOT / "docs" / "how-do-i.md").read_text(encoding="utf-8")
    answers = dict(section.split("\n", maxsplit=1) for section in page.split("\n### ")[1:])
    assert {question for question, answer in answers.items() if not _BLOCK.search(answer)} == {*_ANSWERED_ELSEWHERE}
    assert all((ROOT / test).exists() for test in _ANSWERED_ELSEWHERE.values())


def test_the_federation_of_the_readme_works(place: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = readme.split("<!-- a federation of your own -->\n```sh\n")[1].split("```")[0]
    # After the first block there is a virtual environment, and nothing has been activated.
    (place / ".venv").symlink_to(Path(sys.prefix))
    folders = (folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "messiahs").exists())
    done = _run(script, place, path=":".join(folders))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "too large" in done.stdout
    assert "Traceback" not in done.stderr
