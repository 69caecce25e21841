"""What the units in a bundle start, on a host whose folders are below one of a test."""

import os
import re
import shlex
from pathlib import Path


def command_of(unit: Path, host: Path) -> list[str]:
    """Return the command of a unit with the rights that it leaves; /etc, /var/lib and /run of messiahs are in `host`.

    As another account than root, it has the rights of that account.
    """
    text = unit.read_text().replace("/etc/", f"{host}/etc/").replace("/var/lib/messiahs", str(host / "state"))
    text = text.replace("/run/messiahs", str(host / "run"))
    (start,) = re.findall("^ExecStart=(.*)$", text, re.MULTILINE)
    kept = [f"+{each.removeprefix('CAP_').lower()}" for each in re.findall(r"\bCAP_\w+", text)]
    confined = ["setpriv", "--no-new-privs", f"--bounding-set={','.join(['-all', *kept])}"]
    return [*(confined if os.geteuid() == 0 else ()), *shlex.split(start)]
