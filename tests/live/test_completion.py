"""What shells offer after the tab key, in the shells themselves, beside modules that run; and the man pages."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.cli.main import COMMANDS
from tests.live.conftest import Federation

pytestmark = pytest.mark.live

BASH = """
eval "$(messiahs completion bash)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_messiahs_completion messiahs
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = "messiahs completion fish | source; complete --do-complete (string join ' ' -- $argv)"
ZSH = """
compdef() { true }
eval "$(messiahs completion zsh)"
whence -w _messiahs_completion
env COMP_WORDS="$*" COMP_CWORD=$(($# - 1)) _MESSIAHS_COMPLETE=zsh_complete messiahs
"""
SHELLS = {"bash": ("bash", "-c", BASH, "bash"), "fish": ("fish", "--no-config", "-c", FISH), "zsh": ("zsh", "-fc", ZSH)}


def offered(pair: Federation, shell: str, *words: str) -> list[str]:
    """Return the lines that a shell offers for `messiahs` and these words, the last of which is not complete."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = (*SHELLS[shell], *(("zsh",) if shell == "zsh" else ()), "messiahs", *words)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**pair.environment, "PATH": path}, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_modules_and_ids_of_tasks(pair: Federation, shell: str) -> None:
    done = pair.submit("--name", "of-completion", "--", "true")
    assert pair.run("wait", done).returncode == 0
    assert any(line.startswith("status") or line == "status" for line in offered(pair, shell, "stat"))
    assert any(line.startswith("right") or line == "right" for line in offered(pair, shell, "run", "--module", "ri"))
    for command in (("status",), ("logs",), ("task", "revoke"), ("submit", "--after-ok")):
        lines = offered(pair, shell, *command, done[:-1])
        assert any(line == done or line.startswith(f"{done}\t") for line in lines), (command, lines)


def test_a_module_that_does_not_answer_offers_nothing_and_prints_nothing(pair: Federation) -> None:
    assert offered(pair, "bash", "status", "--state", "/nowhere", "left.") == [""]
    process = pair.pid(pair.module, "daemon")
    os.kill(process, signal.SIGSTOP)
    try:
        assert offered(pair, "bash", "status", "--module", pair.module, "left.") == [""]
    finally:
        os.kill(process, signal.SIGCONT)


def test_the_man_pages_have_all_commands_and_are_found_by_man(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "messiahs.cli.main", "man", "--into", str(tmp_path / "man1")],
        check=True,
        capture_output=True,
        text=True,
    )
    pages = {page.name: page.read_text() for page in (tmp_path / "man1").iterdir()}
    assert done.stdout.startswith(f"{len(pages)} pages are in {tmp_path / 'man1'}; ")
    assert f'`export MANPATH="$MANPATH:{tmp_path}"`' in done.stdout
    assert {f"messiahs-{name}.1" for name in COMMANDS} | {"messiahs.1", "messiahs-task-revoke.1"} <= pages.keys()
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man is not installed")
    for name in pages:
        shown = subprocess.run(
            ["man", "--warnings", "--encoding=UTF-8", "--local-file", str(tmp_path / "man1" / name)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80"},
        )
        assert shown.stderr == "", name
        assert "NAME" in shown.stdout
    found = subprocess.run(
        ["man", "messiahs-run"], check=True, capture_output=True, env={**os.environ, "MANPATH": str(tmp_path)}
    )
    assert b"Run a task" in found.stdout
