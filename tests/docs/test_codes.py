"""The page for users explains every code with which a task can be denied."""

import re
from pathlib import Path

from messiahs.core.interface.dependencies import DEPENDENCY_FAILED
from messiahs.core.interface.messages import DenyCode

PAGE = Path(__file__).parents[2] / "docs" / "users.md"
NO_REASON_OF_A_TASK = {DenyCode.NO_TASK, DenyCode.DRAINING}
"""The answer to a module that asks for tasks, and the codes that no release sends yet."""


def test_every_code_is_explained() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| code | means |\n|---|---|\n")[2].split("\n\n")[0]
    explained = re.findall(r"`([a-z_]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()))
    assert sorted(explained) == sorted(set(DenyCode) - NO_REASON_OF_A_TASK | {DEPENDENCY_FAILED})
