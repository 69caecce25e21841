"""Environments of conda that users name, by their prefix or by the name that conda knows."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from messiahs.errors import ClientError, OptionValueError

_META: Final = "conda-meta"
_ROOT: Final = "base"
_SECONDS: Final = 60.0


def prefix_of(named: str) -> str:
    """Return the prefix of an environment: a folder, or what conda knows by a name. Raises `ClientError`."""
    is_folder = "/" in named or Path(named, _META).is_dir()
    # Programs of an environment have its path in them, links and all.
    prefix = os.path.abspath(named) if is_folder else _known(named)  # noqa: PTH100 - it resolves no links
    if not Path(prefix, _META).is_dir():
        raise OptionValueError(f"`{named}` is no environment of conda: {prefix} has no {_META}")
    return prefix


def _known(name: str) -> str:
    active = os.environ.get("CONDA_PREFIX", "")
    if active and Path(active).name == name:
        return active
    program = os.environ.get("CONDA_EXE") or shutil.which("conda") or shutil.which("mamba")
    if program is None:
        raise OptionValueError(f"no conda is here that knows the environment `{name}`: name its folder")
    try:
        done = subprocess.run([program, "info", "--json"], capture_output=True, check=True, timeout=_SECONDS)
        found = json.loads(done.stdout)
        places = {Path(one).name: str(one) for one in reversed(found["envs"])} | {_ROOT: str(found["root_prefix"])}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise ClientError(f"`{program} info --json` does not tell which environments there are: {error}") from error
    if name not in places:
        raise OptionValueError(f"conda knows no environment `{name}`, but {', '.join(sorted(places))}")
    return places[name]
