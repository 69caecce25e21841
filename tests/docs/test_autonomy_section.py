"""The commands in docs/security.md that try the autonomies of a running module work: with one test of each kind."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
_SECTION = re.compile(r"^## Trying it on a module\n.*?^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SECTION_SECONDS = 840
"""Less than a test may take, so that commands that hang are ended with all that they have begun."""
_CHOSEN = "reveals_and_nothing or revokes or every_change or lies_about or sent_again"
"""Floods, and what takes long, are left out here; `tests/autonomy` runs them."""


def test_the_commands_that_try_a_running_module_work(tmp_path: Path) -> None:
    found = _SECTION.search((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    assert found is not None
    # The reader is in a checkout.
    for name in ("tests", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": f"-k '{_CHOSEN}' -p no:cacheprovider"}
    environment.pop("MESSIAHS_MODULE", None)
    environment.pop("MESSIAHS_STATE", None)
    command = ["bash", "-euo", "pipefail", "-c", found[1]]
    printed = tmp_path / "printed"
    # Modules that are left after a failure would hold a pipe open.
    with (
        printed.open("w") as output,
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=output, start_new_session=True
        ) as shell,
    ):
        try:
            code = shell.wait(timeout=_SECTION_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    text = printed.read_text()
    assert code == 0, text
    assert "passed" in text
